//! Is the generated data the benchmark's, and do its queries and loads fit it?

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::io::{self, Read, Write};
use std::path::PathBuf;

use jindou_datagen::DatagenError;
use jindou_datagen::lubm::{
    CONSTANT, Class, Counts, LAST_UNIVERSITY, LightClass, LightLoad, Lubm, Predicate, QUERIES,
};
use oxrdf::{TermRef, Triple};

/// FNV-1a, 64 bits, and the length: tells two texts apart well enough to pin one of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Fingerprint {
    bytes: u64,
    hash: u64,
}

impl Fingerprint {
    fn of(data: &Lubm) -> Self {
        let mut fingerprint = Self {
            bytes: 0,
            hash: 0xcbf2_9ce4_8422_2325,
        };
        data.write(&mut fingerprint).expect("hashing does not fail");
        fingerprint
    }
}

impl Write for Fingerprint {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        self.bytes += text.len() as u64;
        self.hash = text.iter().fold(self.hash, |hash, &b| {
            (hash ^ u64::from(b)).wrapping_mul(0x100_0000_01b3)
        });
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Fails at the first write that differs from what `expected` reads.
struct Compare<R>(R);

impl<R: Read> Write for Compare<R> {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        let mut expected = vec![0; text.len()];
        self.0.read_exact(&mut expected)?;
        if expected == text {
            Ok(text.len())
        } else {
            Err(io::Error::other("the text differs"))
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn text(data: &Lubm) -> (Vec<u8>, Counts) {
    let mut out = Vec::new();
    let counts = data.write(&mut out).expect("writing to memory");
    (out, counts)
}

fn triples(data: &Lubm) -> Vec<Triple> {
    let mut all = Vec::new();
    data.generate(|triple| all.push(triple.into_owned()))
        .expect("few universities");
    all
}

#[test]
fn seed_zero_gives_the_benchmarks_own_text() {
    // Of the reference files, which the next test compares with where they are present.
    for (universities, bytes, hash) in [
        (1, 17_484_175, 3_724_163_955_043_269_437),
        (10, 223_611_329, 5_605_570_550_414_517_140),
    ] {
        let fingerprint = Fingerprint::of(&Lubm::new(universities, 0));
        assert_eq!(
            fingerprint,
            Fingerprint { bytes, hash },
            "{universities} universities"
        );
    }
}

#[test]
fn text_equals_the_reference_files_byte_for_byte() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/lubm");
    if !folder.is_dir() {
        println!("SKIPPED: LUBM text against reference files (…/shared/data is absent)");
        return;
    }
    for universities in [1, 10] {
        let file = std::fs::File::open(folder.join(format!("lubm-{universities}.nt.zst")))
            .expect("the reference file opens");
        let mut rest = Compare(zstd::Decoder::new(file).expect("the reference is compressed"));
        Lubm::new(universities, 0)
            .write(&mut rest)
            .unwrap_or_else(|error| panic!("LUBM-{universities}: {error}"));
        let left = rest
            .0
            .read(&mut [0])
            .expect("the reference file is readable");
        assert_eq!(left, 0, "LUBM-{universities}: the reference file has more");
    }
}

#[test]
fn counts_are_those_reported_for_seed_zero() {
    let one = Lubm::new(1, 0).count().unwrap();
    assert_eq!((one.statements(), one.distinct()), (103_074, 100_543));
    assert_eq!(one.class(Class::Course), 828);
    assert_eq!(one.class(Class::FullProfessor), 125);
    let ten = Lubm::new(10, 0).count().unwrap();
    assert_eq!((ten.statements(), ten.distinct()), (1_316_322, 1_272_575));
    assert_eq!(ten.class(Class::Course), 10_278);
    // The rows of q2 on 40 universities.
    let forty = Lubm::new(40, 0).count().unwrap();
    assert_eq!(forty.class(Class::Course), 43_291);
}

#[test]
fn counts_agree_with_the_statements_made() {
    // From 999 to 1001: on both sides of the pool that degrees are taken from.
    for (first, seed) in [(0, 0), (0, 5), (999, 5), (7000, 131_071)] {
        let data = Lubm {
            universities: 3,
            first,
            seed,
        };
        let all = triples(&data);
        let mut predicates = BTreeMap::new();
        let mut classes = BTreeMap::new();
        for triple in &all {
            *predicates.entry(triple.predicate.as_str()).or_insert(0) += 1;
            if triple.predicate.as_str() == Predicate::Type.iri() {
                let TermRef::NamedNode(class) = triple.object.as_ref() else {
                    panic!("a class is an IRI: {triple}")
                };
                *classes.entry(class.as_str().to_owned()).or_insert(0) += 1;
            }
        }
        let counts = data.count().unwrap();
        assert_eq!(counts.statements(), all.len() as u64);
        assert_eq!(
            counts.distinct(),
            all.iter().collect::<HashSet<_>>().len() as u64
        );
        for p in Predicate::ALL {
            assert_eq!(
                predicates.remove(p.iri()),
                Some(counts.predicate(*p)),
                "{p:?}"
            );
        }
        for c in Class::ALL {
            assert_eq!(classes.remove(c.iri()), Some(counts.class(*c)), "{c:?}");
        }
        assert!(predicates.is_empty() && classes.is_empty());
    }
}

#[test]
fn same_seed_same_text_other_seed_other_text() {
    let of = |seed| Fingerprint::of(&Lubm::new(1, seed));
    assert_eq!(of(3), of(3));
    assert_ne!(of(3), of(4));
}

#[test]
fn universities_made_apart_are_the_universities_made_together() {
    let data = Lubm {
        universities: 3,
        first: 2,
        seed: 9,
    };
    let (whole, counts) = text(&data);
    let mut parts = String::new();
    let mut sum = Counts::default();
    for university in data.indices().unwrap() {
        sum += &data.append_university(university, &mut parts);
    }
    assert!(whole == parts.as_bytes());
    assert_eq!(sum, counts);
    assert_eq!(sum, data.count().unwrap());
}

#[test]
fn text_and_triples_say_the_same() {
    let data = Lubm::new(1, 1);
    let (text, _) = text(&data);
    let parsed: Vec<Triple> = oxttl::NTriplesParser::new()
        .for_slice(&text)
        .collect::<Result<_, _>>()
        .expect("the text is N-Triples");
    assert!(parsed == triples(&data));
}

#[test]
fn each_department_keeps_within_the_benchmarks_ranges() {
    for seed in [0, 1, 77] {
        let counts = Lubm::new(20, seed).count().unwrap();
        let per_department =
            |class| counts.class(class) as f64 / counts.class(Class::Department) as f64;
        for (class, fewest, most) in [
            (Class::FullProfessor, 7., 10.),
            (Class::AssociateProfessor, 10., 14.),
            (Class::AssistantProfessor, 8., 11.),
            (Class::Lecturer, 5., 7.),
            (Class::ResearchGroup, 10., 20.),
            (Class::Course, 30., 84.),
            (Class::GraduateCourse, 30., 84.),
        ] {
            let mean = per_department(class);
            assert!(
                (fewest..=most).contains(&mean),
                "seed {seed}: {class:?} {mean}"
            );
        }
        let departments = counts.class(Class::Department);
        assert!(
            (20 * 15..=20 * 25).contains(&departments),
            "seed {seed}: {departments}"
        );
        assert_eq!(
            counts.predicate(Predicate::HeadOf),
            departments,
            "seed {seed}"
        );
        assert_eq!(
            counts.predicate(Predicate::TeacherOf),
            counts.class(Class::Course) + counts.class(Class::GraduateCourse),
            "every course has one teacher; seed {seed}"
        );
    }
}

#[test]
fn universities_past_the_last_number_are_refused() {
    let last = Lubm {
        universities: 1,
        first: LAST_UNIVERSITY,
        seed: 0,
    };
    assert_eq!(last.indices().unwrap().len(), 1);
    for (first, universities) in [(LAST_UNIVERSITY, 2), (u32::MAX, 1)] {
        let data = Lubm {
            universities,
            first,
            seed: 0,
        };
        let refused = DatagenError::TooManyUniversities {
            first,
            universities,
        };
        assert_eq!(data.count(), Err(refused.clone()));
        assert_eq!(LightLoad::over(data, 0).err(), Some(refused));
        assert!(data.write(&mut Vec::new()).is_err());
    }
}

#[test]
fn queries_and_templates_are_sparql() {
    for (name, query) in QUERIES {
        spargebra::SparqlParser::new()
            .parse_query(query)
            .unwrap_or_else(|error| panic!("{name}: {error}"));
    }
    for class in LightClass::ALL {
        assert_eq!(class.template().matches(CONSTANT).count(), 1, "{class:?}");
        spargebra::SparqlParser::new()
            .parse_query(class.template())
            .unwrap_or_else(|error| panic!("{class:?}: {error}"));
    }
}

#[test]
fn varied_queries_are_the_queries_they_vary() {
    let department = "http://www.Department0.University0.edu";
    for (class, constant, at) in [
        (LightClass::L4, department, 3),
        (LightClass::L5, department, 4),
        (LightClass::L6, "http://www.University0.edu", 5),
    ] {
        assert_eq!(class.text(constant), QUERIES[at].1, "{class:?}");
    }
}

#[test]
fn constants_of_the_light_load_exist_and_all_are_drawn() {
    let data = Lubm {
        universities: 2,
        first: 0,
        seed: 3,
    };
    let instances = |wanted: Class| -> BTreeSet<String> {
        triples(&data)
            .into_iter()
            .filter(|t| t.predicate.as_str() == Predicate::Type.iri())
            .filter(|t| t.object.to_string() == format!("<{}>", wanted.iri()))
            .map(|t| t.subject.to_string().trim_matches(['<', '>']).to_owned())
            .collect()
    };
    let mut load = LightLoad::over(data, 12).unwrap();
    for (class, wanted, draws) in [
        (LightClass::A1, Class::GraduateCourse, 40_000),
        (LightClass::A2, Class::AssistantProfessor, 10_000),
        (LightClass::A3, Class::Department, 1_000),
        (LightClass::L4, Class::Department, 1_000),
        (LightClass::L5, Class::Department, 1_000),
    ] {
        let drawn: BTreeSet<String> = (0..draws).map(|_| load.draw_of(class).constant).collect();
        assert_eq!(drawn, instances(wanted), "{class:?}");
    }
    let drawn: BTreeSet<String> = (0..100)
        .map(|_| load.draw_of(LightClass::L6).constant)
        .collect();
    assert_eq!(drawn.len(), 2, "only generated universities: {drawn:?}");
}

#[test]
fn classes_of_the_light_load_come_by_weight() {
    let mut drawn = BTreeMap::new();
    for query in LightLoad::new(1, 1).unwrap().take(86_000) {
        *drawn.entry(query.class).or_insert(0_u32) += 1;
    }
    for class in LightClass::ALL {
        let expected = f64::from(class.weight() * 1000);
        let off = (f64::from(drawn[&class]) - expected).abs();
        // Five standard deviations of a binomial draw.
        assert!(
            off < 5. * expected.sqrt(),
            "{class:?}: {} of {expected}",
            drawn[&class]
        );
    }
}

#[test]
fn light_loads_repeat_by_seed_and_need_data() {
    let of = |seed| {
        LightLoad::new(3, seed)
            .unwrap()
            .take(50)
            .collect::<Vec<_>>()
    };
    assert_eq!(of(8), of(8));
    assert_ne!(of(8), of(9));
    assert_eq!(
        LightLoad::new(0, 8).err(),
        Some(DatagenError::NoUniversities)
    );
}
