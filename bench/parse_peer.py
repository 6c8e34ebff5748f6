"""The fields of books.toml by parsel or selectolax: `parse_peer.py parsel|selectolax FOLDER REPEAT OUT`. Writes the records of
one round to OUT, and answers with seconds of its own work, without the start of Python. Bytes in, JSON text out, as ours."""

import json
import pathlib
import re
import sys
import time
from urllib.parse import urljoin

RATINGS = {"One": 1, "Two": 2, "Three": 3, "Four": 4, "Five": 5}
PRICE, STOCK, STAR = re.compile(r"^£(.+)$"), re.compile(r"\((\d+) available\)"), re.compile(r"star-rating (\w+)")


def record(url: str, title, price, stock, rating, upc, tax, reviews, description, image) -> dict:
    return {"title": title, "price": PRICE.search(price)[1], "availability": int(STOCK.search(stock)[1]),
            "rating": RATINGS[STAR.search(rating)[1]], "upc": upc, "tax": tax.replace("£", ""), "reviews": int(reviews),
            "description": description, "image": urljoin(url, image)}


def by_parsel(url: str, body: bytes) -> list:
    from parsel import Selector

    page = Selector(text=body.decode("utf-8"))
    found = []
    for item in page.css("article.product_page"):
        found.append(record(
            url, item.css("h1::text").get(), item.css(".product_main .price_color::text").get(),
            "".join(item.css(".product_main .availability::text").getall()), item.css(".product_main .star-rating::attr(class)").get(),
            item.css("table tr:nth-of-type(1) td::text").get(), item.css("table tr:nth-of-type(5) td::text").get(),
            item.css("table tr:nth-of-type(7) td::text").get(), item.css("#product_description + p::text").get(),
            item.css("#product_gallery img::attr(src)").get()))
    return found


def by_selectolax(url: str, body: bytes) -> list:
    from selectolax.lexbor import LexborHTMLParser

    page = LexborHTMLParser(body.decode("utf-8"))
    found = []
    for item in page.css("article.product_page"):
        def text(selector):
            node = item.css_first(selector)
            return None if node is None else node.text(deep=False)
        found.append(record(
            url, text("h1"), text(".product_main .price_color"), text(".product_main .availability"),
            item.css_first(".product_main .star-rating").attributes["class"], text("table tr:nth-of-type(1) td"),
            text("table tr:nth-of-type(5) td"), text("table tr:nth-of-type(7) td"), text("#product_description + p"),
            item.css_first("#product_gallery img").attributes["src"]))
    return found


def main(side: str, folder: str, repeat: int, out: str) -> None:
    parse = {"parsel": by_parsel, "selectolax": by_selectolax}[side]
    files = sorted(pathlib.Path(folder).glob("*.html"))
    pages = [(f"http://books.test/catalogue/{file.stem}/index.html", file.read_bytes()) for file in files]
    records = [r for url, body in pages for r in parse(url, body)]
    with open(out, "w", encoding="utf-8") as lines:
        lines.writelines(json.dumps(r) + "\n" for r in records)
    begin, cpu, size = time.perf_counter(), time.process_time(), 0
    for _ in range(repeat):
        for url, body in pages:
            size += len(json.dumps(parse(url, body)))
    print(json.dumps({"seconds": time.perf_counter() - begin, "cpu_s": time.process_time() - cpu,
                      "pages": repeat * len(pages), "json_bytes": size}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4])
