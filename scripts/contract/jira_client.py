"""The jira package reads, moves and discusses tickets at the stand-in."""

import jira


def text(words):
    paragraph = {"type": "paragraph", "content": [{"type": "text", "text": words}]}
    return {"type": "doc", "version": 1, "content": [paragraph]}


def client(begin, who):
    options = {"server": begin["url"], "rest_api_version": "3"}
    made = jira.JIRA(options=options, basic_auth=tuple(begin[who]), get_server_info=False, max_retries=0)
    # The stand-in describes neither its server nor its fields, which is all that these would be read from.
    made.deploymentType = "Cloud"
    made._fields_cache_value = {"Summary": "summary"}
    return made


def read(reader, begin):
    key = begin["key"]
    assert reader.myself()["emailAddress"] == begin["reader"][0]
    issue = reader.issue(key, expand="changelog")
    assert issue.fields.summary == "Count the cart", issue.fields.summary
    assert issue.changelog.histories[0].items, "the changelog has items"
    assert issue.fields.issuelinks[0].outwardIssue.key == begin["other"]
    found = reader.enhanced_search_issues(f'project = "{begin["project"]}" ORDER BY updated ASC', use_post=True)
    assert key in [one.key for one in found]
    comments = reader.comments(key)
    assert comments[0].author.displayName == "Ada", comments[0].author
    permissions = reader.my_permissions(projectKey=begin["project"], permissions="EDIT_ISSUES,ADD_COMMENTS")
    assert "EDIT_ISSUES" in permissions["permissions"]


def write(writer, begin):
    key = begin["key"]
    comment = writer.add_comment(key, text("Hello."))
    comment.update(body=text("Hello again."))
    assert writer.comments(key)[-1].id == comment.id
    comment.delete()
    offered = writer.transitions(key, expand="transitions.fields")
    assert "In Progress" in [one["to"]["name"] for one in offered]
    writer.transition_issue(key, "In Progress")
    issue = writer.issue(key)
    assert issue.fields.status.name == "In Progress", issue.fields.status
    writer.add_simple_link(key, {"url": "https://example.test/1", "title": "One"})
    assert [link.object.title for link in writer.remote_links(key)] == ["One"]


def refuse(reader):
    try:
        reader.issue("ENG-999")
    except jira.JIRAError as error:
        assert error.status_code == 404, error
    else:
        raise AssertionError("a ticket was found that no test created")


def drive(begin):
    reader = client(begin, "reader")
    read(reader, begin)
    refuse(reader)
    write(client(begin, "writer"), begin)
    print("contract: jira did all its calls")
