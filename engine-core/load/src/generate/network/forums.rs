//! Forums: their members and tags, and the posts in them with comments and likes.

use super::people::People;
use super::{
    COMMENT, COMMENT_HAS_CREATOR, COMMENT_HAS_TAG, COMMENT_IS_LOCATED_IN, CONTAINER_OF, Element, Elements,
    FORUM, FORUM_HAS_TAG, FORUM_STREAM, HAS_MEMBER, HAS_MODERATOR, LIKES_COMMENT, LIKES_POST, PERSON, POST,
    POST_HAS_CREATOR, POST_HAS_TAG, POST_IS_LOCATED_IN, REPLY_OF_COMMENT, REPLY_OF_POST, RandomStream, TAG,
    Table, Vertex, distinct, tag,
};

/// Generates forums, and numbers posts and comments in the order of generation.
pub struct Forums<'a> {
    seed: u64,
    people: &'a People,
    posts: u64,
    comments: u64,
    members: Vec<u64>,
    tags: Vec<u64>,
    /// Posts and comments of a thread.
    thread: Vec<Message>,
    /// Numbers that are drawn for one message.
    drawn: Vec<u64>,
}

struct Message {
    vertex: Vertex,
    /// A tag of the message, which its replies are likely to have too.
    topic: Option<u64>,
}

/// The tables of the edges of a kind of message.
struct Kind {
    creator: &'static Table,
    tag: &'static Table,
    country: &'static Table,
    likes: &'static Table,
    /// One more than the largest number of tags.
    tags: u64,
}

static POSTS: Kind = Kind {
    creator: &POST_HAS_CREATOR,
    tag: &POST_HAS_TAG,
    country: &POST_IS_LOCATED_IN,
    likes: &LIKES_POST,
    tags: 3,
};

static COMMENTS: Kind = Kind {
    creator: &COMMENT_HAS_CREATOR,
    tag: &COMMENT_HAS_TAG,
    country: &COMMENT_IS_LOCATED_IN,
    likes: &LIKES_COMMENT,
    tags: 4,
};

impl<'a> Forums<'a> {
    /// Starts with the first post and the first comment.
    pub fn new(seed: u64, people: &'a People) -> Self {
        let [members, tags, drawn] = Default::default();
        Self { seed, people, posts: 0, comments: 0, members, tags, thread: vec![], drawn }
    }

    /// Generates a forum with everything in it.
    pub fn forum<E>(
        &mut self,
        number: u64,
        out: &mut Elements<'_, impl FnMut(Element<'_>) -> Result<(), E>>,
    ) -> Result<(), E> {
        let (people, mut random) = (self.people, RandomStream::new(self.seed, FORUM_STREAM + number));
        let random = &mut random;
        let forum = Vertex(&FORUM, number);
        let moderator = random.below(people.count());
        out.vertex(forum)?;
        out.edge(&HAS_MODERATOR, forum, Vertex(&PERSON, moderator))?;
        distinct(1 + random.below(6), &mut self.tags, || Some(tag(random)));
        self.tags.iter().try_for_each(|&n| out.edge(&FORUM_HAS_TAG, forum, Vertex(&TAG, n)))?;
        distinct(random.amount(7), &mut self.members, || {
            let close = random.below(4) > 0;
            Some(if close { people.near(random, moderator) } else { people.popular(random) })
        });
        self.members.iter().try_for_each(|&n| out.edge(&HAS_MEMBER, forum, Vertex(&PERSON, n)))?;
        (0..random.amount(6)).try_for_each(|_| self.thread(forum, random, out))
    }

    /// Generates a post with its comments. One post out of four has comments, and most of them reply to the post.
    fn thread<E>(
        &mut self,
        forum: Vertex,
        random: &mut RandomStream,
        out: &mut Elements<'_, impl FnMut(Element<'_>) -> Result<(), E>>,
    ) -> Result<(), E> {
        let post = Vertex(&POST, self.posts);
        self.posts += 1;
        out.vertex(post)?;
        out.edge(&CONTAINER_OF, forum, post)?;
        let topic = random.pick(&self.tags);
        let topic = self.message(post, &POSTS, topic, random, out)?;
        self.thread.clear();
        self.thread.push(Message { vertex: post, topic });
        if random.below(4) > 0 {
            return Ok(());
        }
        for _ in 0..random.amount(5) {
            let comment = Vertex(&COMMENT, self.comments);
            self.comments += 1;
            out.vertex(comment)?;
            let replied = if random.below(2) == 0 { 0 } else { random.below(self.thread.len() as u64) };
            let replied = &self.thread[replied as usize];
            let table =
                if std::ptr::eq(replied.vertex.0, &POST) { &REPLY_OF_POST } else { &REPLY_OF_COMMENT };
            out.edge(table, comment, replied.vertex)?;
            let topic = replied.topic;
            let topic = self.message(comment, &COMMENTS, topic, random, out)?;
            self.thread.push(Message { vertex: comment, topic });
        }
        Ok(())
    }

    /// Generates the edges that posts and comments have in common. `topic` is a tag that the message has with a
    /// probability of a half, if it has tags. Returns the first tag of the message.
    fn message<E>(
        &mut self,
        message: Vertex,
        kind: &Kind,
        topic: Option<u64>,
        random: &mut RandomStream,
        out: &mut Elements<'_, impl FnMut(Element<'_>) -> Result<(), E>>,
    ) -> Result<Option<u64>, E> {
        let Some(creator) = random.pick(&self.members) else { return Ok(None) };
        out.edge(kind.creator, message, Vertex(&PERSON, creator))?;
        out.edge(kind.country, message, self.people.country(creator))?;
        let mut topic = topic.filter(|_| random.below(2) == 0);
        distinct(random.below(kind.tags), &mut self.drawn, || {
            Some(topic.take().unwrap_or_else(|| tag(random)))
        });
        self.drawn.iter().try_for_each(|&n| out.edge(kind.tag, message, Vertex(&TAG, n)))?;
        let topic = self.drawn.first().copied();
        // One message out of six is liked.
        let likes = if random.below(6) == 0 { random.amount(4) } else { 0 };
        distinct(likes, &mut self.drawn, || Some(self.people.near(random, creator)));
        self.drawn.iter().try_for_each(|&n| out.edge(kind.likes, Vertex(&PERSON, n), message))?;
        Ok(topic)
    }
}
