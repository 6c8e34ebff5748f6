//! A crawl: workers that claim from the queue, fetch, put into pack parts and finish; and its closing.
