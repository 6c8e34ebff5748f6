"""A Scrapy spider over the test site, with the links that the measured crawl follows: `scrapy_peer.py URL`. It keeps nothing of
what it gets. Answers with the seconds from its first request to its last, and the CPU of the whole process."""

import json
import resource
import sys
import time

import scrapy
from scrapy.crawler import CrawlerProcess


class Rentals(scrapy.Spider):
    name = "rentals"
    count = 0
    begin = None

    async def start(self):
        self.begin = time.perf_counter()
        yield scrapy.Request(sys.argv[1])

    def parse(self, response):
        Rentals.count += 1
        for link in response.css("main a[href*='/rent/']::attr(href)").getall():
            yield response.follow(link, callback=self.parse_detail)
        for link in response.css("a[rel=next]::attr(href)").getall():
            yield response.follow(link, priority=1)

    def parse_detail(self, response):
        Rentals.count += 1

    def closed(self, reason):
        usage = resource.getrusage(resource.RUSAGE_SELF)
        print(json.dumps({"requests": self.count, "seconds": time.perf_counter() - self.begin,
                          "cpu_s": usage.ru_utime + usage.ru_stime, "peak_mb": usage.ru_maxrss / 1024, "reason": reason}))


if __name__ == "__main__":
    process = CrawlerProcess(settings={
        "LOG_ENABLED": False, "ROBOTSTXT_OBEY": True, "CONCURRENT_REQUESTS": 32, "CONCURRENT_REQUESTS_PER_DOMAIN": 32,
        "DOWNLOAD_DELAY": 0, "AUTOTHROTTLE_ENABLED": False, "USER_AGENT": "scrapy-bench/1", "TELNETCONSOLE_ENABLED": False})
    process.crawl(Rentals)
    process.start()
