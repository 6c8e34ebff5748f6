//! What programs read: robots.txt in all its forms, sitemaps, pictures.

use crate::demo_site::draw::{Draw, Purpose};
use crate::demo_site::fault::RobotsFault;
use crate::demo_site::page::entrance;
use crate::demo_site::page::layout::put;
use crate::demo_site::page::scene::{Media, Rendered, Scene};
use crate::demo_site::words::Lang;

/// Addresses in one sitemap; the protocol allows 50,000.
const SITEMAP_LISTINGS: usize = 10_000;
/// Size of the robots.txt of the fault `huge`; a reader need not look beyond 500 KiB (RFC 9309, 2.5).
const HUGE_ROBOTS: usize = 1 << 20;

/// `/robots.txt`
pub(crate) fn robots(scene: &Scene<'_>) -> Rendered {
    let sitemap = format!("Sitemap: {}/sitemap.xml\n", scene.origin());
    let ordinary = "User-agent: *\nDisallow: /private/\nDisallow: /*/private/\n";
    let text = match scene.look.robots {
        Some(RobotsFault::Allow) => "User-agent: *\nDisallow:\n".to_owned(),
        Some(RobotsFault::Deny) => "User-agent: *\nDisallow: /\n".to_owned(),
        Some(RobotsFault::Delay(seconds)) => {
            format!("{ordinary}Crawl-delay: {seconds}\n{sitemap}")
        }
        Some(RobotsFault::Huge) => huge_robots(),
        Some(RobotsFault::Garbage) => return garbage(),
        Some(RobotsFault::Status(_) | RobotsFault::Redirect(_) | RobotsFault::Hang) | None => {
            format!("{ordinary}\nUser-agent: BadBot\nDisallow: /\n\n{sitemap}")
        }
    };
    Rendered::new(200, Media::Text, text.into_bytes()).changed_at(scene.start_of_day())
}

fn huge_robots() -> String {
    let mut text = "User-agent: *\nDisallow: /private/\n".to_owned();
    let mut n = 0_u32;
    while text.len() < HUGE_ROBOTS {
        put(&mut text, format_args!("Disallow: /private/old/{n}/\n"));
        n += 1;
    }
    text.push_str("Disallow: /\n");
    text
}

/// A page of an unhappy server, with bytes that are neither text nor rules.
fn garbage() -> Rendered {
    let mut bytes =
        b"<!DOCTYPE html><html><body>User-agent: \x00\xff\xfe * Disallow /zh <br>".to_vec();
    bytes.extend((0..=255).cycle().take(4096).map(|b: u8| b ^ 0xa5));
    Rendered::new(200, Media::Text, bytes)
}

/// `/sitemap.xml`
pub(crate) fn sitemap_index(scene: &Scene<'_>) -> Rendered {
    let count = scene.market.day(scene.date).flats(None).len();
    let mut xml = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<sitemapindex xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">\n".to_owned();
    for n in 1..=count.div_ceil(SITEMAP_LISTINGS) {
        put(
            &mut xml,
            format_args!(
                "<sitemap><loc>{}/sitemap/{n}.xml</loc><lastmod>{}</lastmod></sitemap>\n",
                scene.origin(),
                scene.date
            ),
        );
    }
    xml.push_str("</sitemapindex>\n");
    Rendered::new(200, Media::Xml, xml.into_bytes()).changed_at(scene.start_of_day())
}

/// `/sitemap/<n>.xml`: both languages of each listing.
pub(crate) fn sitemap(scene: &Scene<'_>, n: u32) -> Rendered {
    let day = scene.market.day(scene.date);
    let at = usize::try_from(n).unwrap_or(usize::MAX);
    let Some(flats) = at
        .checked_sub(1)
        .and_then(|at| day.flats(None).chunks(SITEMAP_LISTINGS).nth(at))
    else {
        return entrance::missing(scene, Lang::Zh);
    };
    let mut xml = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">\n".to_owned();
    let origin = scene.origin();
    for flat in flats {
        let listing = scene.market.listing_of(*flat, scene.date);
        for lang in Lang::ALL {
            put(
                &mut xml,
                format_args!(
                    "<url><loc>{origin}/{}/rent/{}</loc><lastmod>{}</lastmod></url>\n",
                    lang.code(),
                    listing.id,
                    listing.changed
                ),
            );
        }
    }
    xml.push_str("</urlset>\n");
    Rendered::new(200, Media::Xml, xml.into_bytes()).changed_at(scene.start_of_day())
}

/// A picture: three rectangles in the colours of the listing.
pub(crate) fn picture(scene: &Scene<'_>, id: u64, n: u32) -> Rendered {
    let mut draw = Draw::new(scene.market.seed(), Purpose::Flat, id, u64::from(n) + 1);
    let mut svg =
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"640\" height=\"480\">\n".to_owned();
    for _ in 0..3 {
        put(
            &mut svg,
            format_args!(
                "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"hsl({},40%,60%)\"/>\n",
                draw.below(320),
                draw.below(240),
                draw.between(80, 320),
                draw.between(60, 240),
                draw.below(360)
            ),
        );
    }
    svg.push_str("</svg>\n");
    Rendered::new(200, Media::Svg, svg.into_bytes())
}
