//! Ways in which people steer the work on a ticket or pull request, for every text that lists them.

/// Goal of a person, with the way to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SteeringWay {
    /// The goal, as the end of the sentence "You want …".
    pub wish: &'static str,
    /// The action.
    pub act: &'static str,
    /// Orders of which one is the comment; empty: the action is not a comment.
    pub orders: &'static [&'static str],
}

/// All ways, the most frequent goal first.
pub const STEERING_WAYS: [SteeringWay; 8] = [
    SteeringWay {
        wish: "a change",
        act: "submit a review with comments; one push answers the whole review",
        orders: &[],
    },
    SteeringWay {
        wish: "the work to stop",
        act: "comment",
        orders: &["/stop"],
    },
    SteeringWay {
        wish: "another try after a failure",
        act: "comment",
        orders: &["/retry"],
    },
    SteeringWay {
        wish: "the cost so far",
        act: "comment",
        orders: &["/cost"],
    },
    SteeringWay {
        wish: "to decide about a change that waits for approval",
        act: "comment",
        orders: &["/approve COMMIT", "/reject", "/feedback TEXT"],
    },
    SteeringWay {
        wish: "to change it yourself",
        act: "push to its branch: Journeyman continues from your commit and never overwrites it",
        orders: &[],
    },
    SteeringWay {
        wish: "to end it",
        act: "close the pull request",
        orders: &[],
    },
    SteeringWay {
        wish: "this list",
        act: "comment",
        orders: &["/help"],
    },
];

/// Conditions under which an order counts, and the end of a draft.
pub const STEERING_CONDITIONS: &str = "An order is the first word of its comment. Reviews and orders count from \
                                       people who may write to the repository. A draft becomes ready when its checks pass.";

/// All ways on a pull request of another author that Journeyman reviews.
pub const REVIEW_WAYS: [SteeringWay; 4] = [
    SteeringWay {
        wish: "a review of the next commit",
        act: "push; each new head gets one review while the request for it exists",
        orders: &[],
    },
    SteeringWay {
        wish: "the review to stop",
        act: "take back the request at GitHub, or comment",
        orders: &["/stop"],
    },
    SteeringWay {
        wish: "the cost so far",
        act: "comment",
        orders: &["/cost"],
    },
    SteeringWay {
        wish: "this list",
        act: "comment",
        orders: &["/help"],
    },
];

/// Conditions under which an order counts on a pull request of another author.
pub const REVIEW_CONDITIONS: &str = "An order is the first word of its comment. Orders count from people who may \
                                     write to the repository.";
