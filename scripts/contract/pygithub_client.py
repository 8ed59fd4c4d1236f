"""PyGithub reads, opens and discusses pull requests at the stand-in."""

import inspect

import github
from github.GithubObject import NotSet


def look(thing):
    """Reads every property that the answer brought: PyGithub refuses those of a wrong type only then."""
    for name, attribute in inspect.getmembers(type(thing)):
        brought = getattr(thing, f"_{name}", NotSet) is not NotSet
        if brought and isinstance(attribute, property):
            getattr(thing, name)
    return thing


def look_all(things, least=1):
    found = [look(thing) for thing in things]
    assert len(found) >= least, f"{len(found)} found, expected {least}"
    return found


def read(repo, begin):
    number, head = begin["number"], begin["head"]
    look_all(repo.get_pulls(state="open"))
    pull = look(repo.get_pull(number))
    assert pull.head.sha == head, pull.head.sha
    look(pull.base.repo)
    look_all(pull.get_reviews())
    look_all(pull.get_review_comments(), 1)
    look_all(pull.get_issue_comments())
    look_all(repo.get_issues_comments())
    look(repo.get_branch("main"))
    look(repo.get_git_ref("heads/first"))
    assert repo.get_collaborator_permission("ada") == "write"
    return pull


def write(repo):
    pull = look(repo.create_pull(base="main", head="second", title="Second", body="One more.", draft=True))
    pull.mark_ready_for_review()
    pull.edit(title="The second")
    assert look(repo.get_pull(pull.number)).title == "The second"
    pull.create_review_request(reviewers=["ada"])
    pull.add_to_labels("journeyman")
    assert [label.name for label in look_all(pull.get_labels())] == ["journeyman"]
    comment = look(pull.create_issue_comment("Hello."))
    comment.edit("Hello again.")
    comment.delete()
    pull.edit(state="closed")


def refuse(repo):
    try:
        repo.create_pull(base="main", head="nowhere", title="None", body="")
    except github.GithubException as error:
        assert error.status == 422, error
    else:
        raise AssertionError("a pull request from nowhere was made")


def use_app(begin):
    auth = github.Auth.AppAuth(begin["app"], begin["key"])
    app = github.GithubIntegration(auth=auth, base_url=begin["url"])
    look(app.get_app())
    owner, name = begin["repository"].split("/")
    installation = look(app.get_repo_installation(owner, name))
    token = look(app.get_access_token(installation.id))
    with github.Github(auth=github.Auth.Token(token.token), base_url=begin["url"]) as client:
        look(client.get_repo(begin["repository"]))


def drive(begin):
    with github.Github(auth=github.Auth.Token(begin["reader"]), base_url=begin["url"], retry=None) as client:
        look(client.get_user())
        pull = read(look(client.get_repo(begin["repository"])), begin)
    with github.Github(auth=github.Auth.Token(begin["writer"]), base_url=begin["url"], retry=None) as client:
        repo = client.get_repo(begin["repository"])
        write(repo)
        refuse(repo)
        line = next(iter(pull.get_review_comments()))
        look(repo.get_pull(pull.number).create_review_comment_reply(line.id, "Because."))
    use_app(begin)
    print("contract: PyGithub did all its calls")
