"""What a run prints: figures, and the story of the first promise that was broken."""

from collections import Counter

STORY_SECONDS = 6
MOST_LINES = 60


def figures(name, history, fleet, schedule, checked, seconds):
    counts = dict(sorted(history.counts.items()))
    requests, searches = counts.pop("requests", 0), counts.pop("searches", 0)
    lines = [
        f"{name}: {seconds:.0f} s, {fleet.kills} kills, {sum(schedule.counts.values())} other faults, {len(history.files)} files, "
        f"{sum(len(follower.seen) for follower in history.followed.values())} events, {sum(checked.values())} promises checked",
        "  faults    " + ", ".join(f"{count} {kind}" for kind, count in sorted(schedule.counts.items())),
        f"  clients   {requests} requests, {searches} searches, " + ", ".join(f"{count} {what}" for what, count in counts.items()),
        "  promises  " + ", ".join(f"{count} × {promise}" for promise, count in checked.items()),
    ]
    return "\n".join(lines)


def story(broken, history, facts):
    """All that is known about a broken promise."""
    lines = [f"BROKEN: {broken.promise}", f"  {broken.message}"]
    steps, about = [], []
    if broken.file:
        file = broken.file
        about.append(f"  {file.name} ({file.id}) of {file.user.name}, asked {sorted(file.asked)}, told {sorted(file.told)}")
        steps = [(at, f"client  {text}") for at, text in file.log]
    ends = [at for at, _ in steps] or [broken.at]
    first, last = min(ends) - STORY_SECONDS, max(ends) + STORY_SECONDS
    steps += [(at, f"fault   {text}") for at, text in history.faults if first <= at <= last]
    for at, text in sorted(steps)[:MOST_LINES]:
        about.append(f"  {at:8.2f}  {text}")
    if broken.file and facts:
        for event in facts.events.get(broken.file.user.name, []):
            if event["data"].get("fileId") == broken.file.id:
                data = event["data"]
                actor = (data.get("actor") or {}).get("name")
                error = data.get("error") or data.get("reason") or ""
                about.append(f"  {event['at']}  {event['type']} {data.get('from')} → {data.get('to')} by {actor} {error}")
    return "\n".join(lines + about)


def summary(broken):
    return "\n".join(f"  {count} × {promise}" for promise, count in Counter(one.promise for one in broken).most_common())
