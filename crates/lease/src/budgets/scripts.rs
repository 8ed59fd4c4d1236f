//! Lua scripts that reserve and settle. Each is one operation of the server, so two planners cannot both
//! exceed a limit.
//!
//! An account is a hash. `cost` and `tokens` were taken for good. `r:<call>` is the maximum of a running call
//! as `<end> <cost> <tokens>`. The state is `<generation> <0|1>`; with 1, every amount of the generation is
//! known.

use redis::Script;

/// Reserves a call. Keys: state, accounts. Arguments: generation, now, end, call, cost, tokens; for each
/// account its limits of cost and tokens (0: none) and its lifetime in ms.
///
/// `near` is set once per account, so that one call reports four fifths. Numbers are formatted with
/// `%.0f`, because Lua writes large ones with an exponent.
const RESERVE: &str = "
local state = redis.call('GET', KEYS[1])
if not state then return {'lost'} end
local generation, complete = string.match(state, '^(%S+) (%d)$')
if generation ~= ARGV[1] then return {'other', state} end
local now, mine = tonumber(ARGV[2]), 'r:' .. ARGV[4]
local wanted = {tonumber(ARGV[5]), tonumber(ARGV[6])}
local taken, held = {}, {}
for i = 2, #KEYS do
  local sums, done = {0, 0}, {0, 0}
  local fields = redis.call('HGETALL', KEYS[i])
  for at = 1, #fields, 2 do
    local name, value = fields[at], fields[at + 1]
    if name == 'cost' then done[1] = tonumber(value)
    elseif name == 'tokens' then done[2] = tonumber(value)
    elseif string.sub(name, 1, 2) == 'r:' and name ~= mine then
      local ends, cost, tokens = string.match(value, '^(%d+) (%d+) (%d+)$')
      if tonumber(ends) <= now then redis.call('HDEL', KEYS[i], name)
      else sums[1], sums[2] = sums[1] + tonumber(cost), sums[2] + tonumber(tokens) end
    end
  end
  for kind = 1, 2 do
    local limit, used = tonumber(ARGV[4 + 3 * (i - 1) + kind - 1]), done[kind] + sums[kind]
    if limit > 0 and used + wanted[kind] > limit then
      return {'refused', complete, tostring(i - 2), tostring(kind), string.format('%.0f', used)}
    end
  end
  taken[i], held[i] = done, sums
end
local answer = {'granted', complete}
for i = 2, #KEYS do
  local near = '0'
  for kind = 1, 2 do
    local limit = tonumber(ARGV[4 + 3 * (i - 1) + kind - 1])
    local used = taken[i][kind] + held[i][kind] + wanted[kind]
    if limit > 0 and used * 5 >= limit * 4 and redis.call('HSETNX', KEYS[i], 'near', 1) == 1 then near = '1' end
  end
  redis.call('HSET', KEYS[i], mine, ARGV[3] .. ' ' .. ARGV[5] .. ' ' .. ARGV[6])
  redis.call('PEXPIRE', KEYS[i], ARGV[4 + 3 * (i - 1) + 2])
  table.insert(answer, string.format('%.0f %.0f ', taken[i][1], taken[i][2]) .. near)
end
return answer";

/// Settles a call. Keys: state, the call's mark, accounts. Arguments: generation, call, cost, tokens,
/// lifetime of the mark in ms, 1 to leave a marked call alone; for each account its lifetime.
///
/// The mark holds the counted amount, so that a repeated call counts only the difference.
const SETTLE: &str = "
local state = redis.call('GET', KEYS[1])
if not state then return {'lost'} end
if string.match(state, '^(%S+)') ~= ARGV[1] then return {'other', state} end
local cost, tokens = tonumber(ARGV[3]), tonumber(ARGV[4])
local mark = redis.call('GET', KEYS[2])
if mark then
  if ARGV[6] == '1' then return {'settled'} end
  local before = {string.match(mark, '^(%d+) (%d+)$')}
  cost, tokens = cost - tonumber(before[1]), tokens - tonumber(before[2])
end
for i = 3, #KEYS do
  redis.call('HDEL', KEYS[i], 'r:' .. ARGV[2])
  redis.call('HINCRBY', KEYS[i], 'cost', string.format('%.0f', cost))
  redis.call('HINCRBY', KEYS[i], 'tokens', string.format('%.0f', tokens))
  redis.call('PEXPIRE', KEYS[i], ARGV[4 + i])
end
redis.call('SET', KEYS[2], ARGV[3] .. ' ' .. ARGV[4], 'PX', ARGV[5])
return {'settled'}";

/// Begins a generation if none exists, and returns the state. Key: state. Argument: the new generation.
const BEGIN: &str = "
local state = redis.call('GET', KEYS[1])
if state then return state end
state = ARGV[1] .. ' 0'
redis.call('SET', KEYS[1], state)
return state";

/// Marks a generation as complete and releases the lock of the rebuild; returns 0 when the generation is
/// gone. Keys: state, lock. Arguments: generation, owner of the lock.
///
/// A lock that expired may belong to another planner by now, so only the owner's lock is deleted.
const COMPLETE: &str = "
local is_there = redis.call('GET', KEYS[1]) == ARGV[1] .. ' 0'
if is_there then redis.call('SET', KEYS[1], ARGV[1] .. ' 1') end
if redis.call('GET', KEYS[2]) == ARGV[2] then redis.call('DEL', KEYS[2]) end
if is_there then return 1 end
return 0";

pub(super) struct BudgetScripts {
    pub(super) reserve: Script,
    pub(super) settle: Script,
    pub(super) begin: Script,
    pub(super) complete: Script,
}

impl BudgetScripts {
    pub(super) fn new() -> Self {
        Self {
            reserve: Script::new(RESERVE),
            settle: Script::new(SETTLE),
            begin: Script::new(BEGIN),
            complete: Script::new(COMPLETE),
        }
    }
}
