//! Which IRIs does the data use?

pub(super) const TYPE: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type";
pub(super) const XSD_DOUBLE: &str = "http://www.w3.org/2001/XMLSchema#double";
pub(super) const XSD_DATE: &str = "http://www.w3.org/2001/XMLSchema#date";
pub(super) const XSD_DATE_TIME: &str = "http://www.w3.org/2001/XMLSchema#dateTime";
pub(super) const RESOURCE: &str = "http://dbpedia.org/resource/";

macro_rules! iris {
    ($namespace:literal: $($name:ident $local:literal),+ $(,)?) => {
        $(pub(super) const $name: &str = concat!($namespace, $local);)+
    };
}

iris!("http://www.ins.cwi.nl/sib/vocabulary/":
    ADDED "added", AGENT "agent", APPROVED "approved", BROWSER "browser", CLASS_YEAR "class_year",
    DECLINED "declined", ENGAGED_WITH "Engaged_with", GROUP_OF_MEMBERSHIP "group_of_membership",
    HASHTAG "hashtag", INITIATOR "initiator", INTEREST "interest",
    IN_RELATIONSHIP_WITH "In_relationship_with", LIKE "like", MARRIED_WITH "Married_with",
    MEMB "memb", MEMBER_OF_MEMBERSHIP "member_of_membership", REAPPROVED "reapproved",
    REQUESTED "requested", USER_STATUS "status", TAG "tag", TRACKED_AT "trackedAt",
    TRACKED_LOCATION "trackedLocation", TRACKED_TIME "trackedTime", USERTAG "usertag",
    WORK_AT "workAt", WORK_FROM "workFrom",
    CLASS_COMMENT "Comment", CLASS_GROUP "Group", CLASS_PHOTO "Photo", CLASS_POST "Post",
    CLASS_USER "User");
iris!("http://rdfs.org/sioc/ns#":
    ACCOUNT_OF "account_of", CONTAINER_OF "container_of", CONTENT "content",
    CREATOR_OF "creator_of", EMAIL "email", HAS_MEMBER "has_member", IP_ADDRESS "ip_address",
    MODERATOR_OF "moderator_of", NAME "name", REPLY_OF "reply_of", SUBSCRIBER_OF "subscriber_of",
    CLASS_FORUM "Forum", CLASS_ITEM "Item", CLASS_SIOC_POST "Post", CLASS_SIOC_USER "user",
    CLASS_USERGROUP "Usergroup");
iris!("http://rdfs.org/sioc/type#": CLASS_GALLERY "ImageGallery");
iris!("http://xmlns.com/foaf/0.1/":
    BASED_NEAR "based_near", BIRTHDAY "birthday", FIRST_NAME "firstName", GENDER "gender",
    KNOWS "knows", LAST_NAME "lastName", ORGANIZATION "organization", CLASS_PERSON "Person");
iris!("http://purl.org/dc/elements/1.1/": CREATED "created", DATE "date");
iris!("http://purl.org/dc/terms/": TITLE "title");
iris!("http://dbpedia.org/property/": LATITUDE "latd", LONGITUDE "longd");
iris!("http://dbpedia.org/ontology/": LOCATION "location");

/// What is numbered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Person,
    User,
    Forum,
    Friendship,
    Group,
    Membership,
    Post,
    Comment,
    Album,
    Photo,
    Gps,
}

impl Kind {
    /// The IRI but for the number.
    #[inline]
    pub(super) const fn prefix(self) -> &'static str {
        match self {
            Kind::Person => "http://www.ins.cwi.nl/sib/person/p",
            Kind::User => "http://www.ins.cwi.nl/sib/user/u",
            Kind::Forum => "http://www.ins.cwi.nl/sib/forum/fo",
            Kind::Friendship => "http://www.ins.cwi.nl/sib/friendship/fr",
            Kind::Group => "http://www.ins.cwi.nl/sib/group/g",
            Kind::Membership => "http://www.ins.cwi.nl/sib/group/membership/gm",
            Kind::Post => "http://www.ins.cwi.nl/sib/post/po",
            Kind::Comment => "http://www.ins.cwi.nl/sib/post/comment/co",
            Kind::Album => "http://www.ins.cwi.nl/sib/photoalbum/pa",
            Kind::Photo => "http://www.ins.cwi.nl/sib/photoalbum/photo/pho",
            Kind::Gps => "http://www.ins.cwi.nl/sib/gps/gps",
        }
    }
}
