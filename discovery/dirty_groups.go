package discovery

import (
	"math/rand/v2"
	"time"
)

const (
	// settleDelay is the time from the last change to a request for all groups. That request also restores the server's order.
	settleDelay = 5 * time.Second
	// resyncInterval is the shortest time between requests for all groups without a change. The longest is a fifth more.
	resyncInterval = 30 * time.Second
	// maxSingleGroups is the maximum number of single-group requests. Above it, a request for all groups is cheaper.
	maxSingleGroups = 10
	// allGroups stands for all groups in place of a group name.
	allGroups = "*"
)

// groupCheckTimes are the delays from a change to the requests for its group. Discovery documents lag behind the objects by an
// unknown time.
var groupCheckTimes = []time.Duration{20 * time.Millisecond, 100 * time.Millisecond, 300 * time.Millisecond, time.Second, 3 * time.Second}

// dirtyGroups schedules requests for changed groups and for all groups.
type dirtyGroups struct {
	groups map[string]groupCheck
	allAt  time.Time
	// maxAllAt bounds allAt. Every change postpones allAt.
	maxAllAt time.Time
}

type groupCheck struct {
	at    time.Time
	index int // index in groupCheckTimes
}

func newDirtyGroups(now time.Time) *dirtyGroups {
	return &dirtyGroups{groups: map[string]groupCheck{}, allAt: now.Add(resyncInterval), maxAllAt: now.Add(resyncInterval)}
}

// mark schedules the checks of a changed group.
func (d *dirtyGroups) mark(group string, now time.Time) {
	// The first check is never postponed: a group under constant change is requested, too.
	if check, scheduled := d.groups[group]; !scheduled || check.index > 0 {
		d.groups[group] = groupCheck{at: now.Add(groupCheckTimes[0])}
	}
	d.allAt = now.Add(settleDelay)
	if d.allAt.After(d.maxAllAt) {
		d.allAt = d.maxAllAt
	}
}

// markAll schedules a request for all groups within a second.
func (d *dirtyGroups) markAll(now time.Time) {
	if soon := now.Add(time.Second); d.allAt.After(soon) {
		d.allAt = soon
	}
}

func (d *dirtyGroups) delay(now time.Time) time.Duration {
	delay := d.allAt.Sub(now)
	for _, check := range d.groups {
		delay = min(delay, check.at.Sub(now))
	}
	return max(delay, 0)
}

// next returns the groups to request now and schedules their next checks. It returns only allGroups if all groups are due or if a
// request for all groups is cheaper.
func (d *dirtyGroups) next(now time.Time) []string {
	var due []string
	all := false
	for group, check := range d.groups {
		if check.at.After(now) {
			continue
		}
		due = append(due, group)
		all = all || group == allGroups
		if index := check.index + 1; index < len(groupCheckTimes) {
			d.groups[group] = groupCheck{at: now.Add(groupCheckTimes[index] - groupCheckTimes[check.index]), index: index}
		} else {
			delete(d.groups, group)
		}
	}
	if !d.allAt.After(now) {
		all = true
		d.allAt = now.Add(resyncInterval + rand.N(resyncInterval/5)) //nolint:gosec // spread, not secrecy
		d.maxAllAt = d.allAt
	}
	if all || len(due) > maxSingleGroups {
		return []string{allGroups}
	}
	return due
}
