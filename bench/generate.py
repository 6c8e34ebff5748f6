#!/usr/bin/env python3
"""Writes the benchmark's data: rental listings as a crawler would have them, the same bytes everywhere.

    generate.py jsonl ROWS FILE             13 fields, 15 leaf columns, some 500 bytes a record
    generate.py jsonl-shuffled ROWS FILE    the same records, the keys of each in an order of its own
    generate.py jsonl-sparse ROWS FILE      the same records, each without some three in ten of its keys but `id`
    generate.py csv ROWS FILE               11 flat columns, quoted line breaks and doubled quotes

Text is drawn from a small vocabulary in Chinese and English, so it compresses better than real text.
Numbers come from our own generator (a 64-bit LCG), not from a library that may change.
"""

import sys

CITIES = ["台北市", "新北市", "桃園市", "台中市", "台南市", "高雄市", "基隆市", "新竹市", "嘉義市", "Hsinchu", "Taipei",
          "上海", "北京", "深圳", "广州", "成都", "杭州", "南京", "武汉", "西安"]
WORDS = ["採光", "電梯", "近捷運", "全新", "裝潢", "陽台", "河景", "公寓", "套房", "雅房", "車位", "可寵", "安靜", "商圈", "学区",
         "精装修", "南北通透", "地铁口", "拎包入住", "整租", "quiet", "bright", "balcony", "furnished", "near the station",
         "river view", "two bathrooms", "no agent", "renovated", "top floor", "garden", "parking"]
NAMES = ["陳先生", "林小姐", "王太太", "李先生", "张女士", "刘先生", "Ms Wu", "Mr Chen", "黃小姐", "吳先生"]
MASK = (1 << 64) - 1
LEFT_OUT = object()


class Numbers:
    """Knuth's 64-bit linear congruential generator; the high bits are used."""

    def __init__(self, seed: int) -> None:
        self.state = seed

    def below(self, n: int) -> int:
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) & MASK
        return (self.state >> 33) % n


def words(numbers: Numbers, n: int, pool: list[str], gap: str) -> str:
    state, size, chosen = numbers.state, len(pool), []
    for _ in range(n):
        state = (state * 6364136223846793005 + 1442695040888963407) & MASK
        chosen.append(pool[(state >> 33) % size])
    numbers.state = state
    return gap.join(chosen)


def description(numbers: Numbers) -> object:
    """Absent 4 %, null 4 %, empty 22 %, blank 2 %, else 12 to 21 words."""
    kind = numbers.below(100)
    if kind < 4:
        return LEFT_OUT
    if kind < 8:
        return None
    if kind < 30:
        return ""
    if kind < 32:
        return "  "
    return words(numbers, 12 + numbers.below(10), WORDS, "，")


def floor(numbers: Numbers) -> object:
    """Absent 5 %, null 20 %, else -2 to 40."""
    kind = numbers.below(100)
    if kind < 5:
        return LEFT_OUT
    if kind < 25:
        return None
    return numbers.below(43) - 2


def when(numbers: Numbers, i: int) -> str:
    minute = (i * 7 + numbers.below(600)) % (28 * 1440)
    return f"2026-11-{1 + minute // 1440:02}T{minute // 60 % 24:02}:{minute % 60:02}:{numbers.below(60):02}+08:00"


def json_members(numbers: Numbers, i: int) -> list[str]:
    number = 7_000_000_000 + i * 37 + numbers.below(37)
    about, level = description(numbers), floor(numbers)
    parts = [
        f'"id":{number}',
        f'"title":"{words(numbers, 3 + numbers.below(4), WORDS, " ")}"',
        f'"url":"https://rent.example.com/listing/{number}.html?from=list&page={i // 30}"',
        f'"city":"{CITIES[numbers.below(20)]}"',
        f'"price":{3000 + numbers.below(90000)}.{numbers.below(100):02}',
        f'"area":{8 + numbers.below(200)}.{numbers.below(10)}',
        f'"rooms":{1 + numbers.below(6)}',
        f'"owner":{"true" if numbers.below(3) == 0 else "false"}',
        f'"posted_at":"{when(numbers, i)}"',
    ]
    if level is not LEFT_OUT:
        parts.append(f'"floor":{"null" if level is None else level}')
    if about is not LEFT_OUT:
        parts.append('"description":null' if about is None else f'"description":"{about}"')
    tags = ",".join(f'"{WORDS[numbers.below(32)]}"' for _ in range(numbers.below(4)))
    parts.append(f'"tags":[{tags}]')
    parts.append(f'"agent":{{"name":"{NAMES[numbers.below(10)]}","phone":"09{numbers.below(100_000_000):08}"}}')
    return parts


def json_record(numbers: Numbers, i: int) -> str:
    return "{" + ",".join(json_members(numbers, i)) + "}"


class Variant:
    """Records whose values are those of `json_record`; what is changed comes from numbers of its own."""

    def __init__(self, change) -> None:
        self.change, self.numbers = change, Numbers(20261201)

    def __call__(self, numbers: Numbers, i: int) -> str:
        return "{" + ",".join(self.change(self.numbers, json_members(numbers, i))) + "}"


def shuffled(numbers: Numbers, members: list[str]) -> list[str]:
    """Fisher and Yates; in half of the records the members of `agent` change places, too."""
    if numbers.below(2) == 0:
        name, phone = members[-1].removeprefix('"agent":{').removesuffix("}").split(",")
        members[-1] = f'"agent":{{{phone},{name}}}'
    for last in range(len(members) - 1, 0, -1):
        chosen = numbers.below(last + 1)
        members[last], members[chosen] = members[chosen], members[last]
    return members


def sparse(numbers: Numbers, members: list[str]) -> list[str]:
    return [m for n, m in enumerate(members) if n == 0 or numbers.below(10) >= 3]


def csv_record(numbers: Numbers, i: int) -> str:
    number = 7_000_000_000 + i * 37 + numbers.below(37)
    about, level = description(numbers), floor(numbers)
    title = words(numbers, 3 + numbers.below(4), WORDS, " ")
    if numbers.below(20) == 0:
        title = f'""{title}""'
    if about is LEFT_OUT or about is None:
        about = ""
    else:
        about = '"' + str(about).replace("，", "\n", 1 if numbers.below(10) == 0 else 0) + '"'
    level = "" if level is LEFT_OUT or level is None else level
    return (f'{number},"{title}",https://rent.example.com/listing/{number}.html?from=list&page={i // 30},'
            f'{CITIES[numbers.below(20)]},{3000 + numbers.below(90000)}.{numbers.below(100):02},'
            f'{8 + numbers.below(200)}.{numbers.below(10)},{1 + numbers.below(6)},'
            f'{"true" if numbers.below(3) == 0 else "false"},{when(numbers, i)},{level},{about}')


CSV_HEADER = "id,title,url,city,price,area,rooms,owner,posted_at,floor,description"


FORMS = {
    "jsonl": lambda: json_record,
    "jsonl-shuffled": lambda: Variant(shuffled),
    "jsonl-sparse": lambda: Variant(sparse),
    "csv": lambda: csv_record,
}


def write(form: str, rows: int, path: str) -> None:
    numbers = Numbers(20261130)
    record = FORMS[form]()
    with open(path, "w", encoding="utf-8", newline="\n") as out:
        if form == "csv":
            out.write(CSV_HEADER + "\n")
        for start in range(0, rows, 10_000):
            end = min(rows, start + 10_000)
            out.write("\n".join(record(numbers, i) for i in range(start, end)) + "\n")


if __name__ == "__main__":
    write(sys.argv[1], int(sys.argv[2]), sys.argv[3])
