import ctypes, errno, fcntl, os, platform, signal, socket, stat, struct, sys, time

libc = ctypes.CDLL(None, use_errno=True)
X = platform.machine() == "x86_64"
NR = dict(vm_readv=310 if X else 270, kcmp=312 if X else 272, pidfd_open=434, pidfd_getfd=438, pidfd_signal=424, tkill=200 if X else 130,
          tgkill=234 if X else 131, sigqueue=129 if X else 138, add_key=248 if X else 217, ioprio_set=251 if X else 30,
          ioprio_get=252 if X else 31)
libc.mq_open.argtypes = [ctypes.c_char_p, ctypes.c_int, ctypes.c_uint, ctypes.c_void_p]
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]


def call(name, *arguments):
    return libc.syscall(NR[name], *arguments)


def answer(result):
    return "allowed" if result >= 0 else errno.errorcode[ctypes.get_errno()]


def tried(work):
    try:
        work()
        return "allowed"
    except OSError as error:
        return errno.errorcode[error.errno]


def daemon(work):
    """Does it in a process that left family, session and group, and waits until it says so."""
    told, tells = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.setpgid(0, 0)
            for number in range(1, 65):
                tried(lambda: signal.signal(number, signal.SIG_IGN) if number not in (9, 19, 32, 33) else None)
            work()
            os.write(tells, b"x")
            while True:
                time.sleep(600)
        os._exit(0)
    os.close(tells)
    print("started" if os.read(told, 1) else "not started", flush=True)
