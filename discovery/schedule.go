package discovery

import (
	"math/rand/v2"
	"time"
)

// followUps are when a group is asked for again after something about it has changed: discovery documents follow a
// moment after the objects, and nothing says when.
var followUps = []time.Duration{20 * time.Millisecond, 100 * time.Millisecond, 300 * time.Millisecond, time.Second, 3 * time.Second}

// The whole is asked for some seconds after the last change, which puts new groups in their places, and regularly,
// whatever changes in between.
const (
	settled   = 5 * time.Second
	regularly = 30 * time.Second
)

// everything, in place of a group, is the whole.
const everything = "*"

// manyGroups are more than one request for the whole costs.
const manyGroups = 10

// schedule is when which group is to be asked for.
type schedule struct {
	groups map[string]appointment
	whole  time.Time
	// latest is when the whole is due at the latest, however often groups are touched.
	latest time.Time
}

type appointment struct {
	at   time.Time
	step int // in followUps
}

func newSchedule(now time.Time) *schedule {
	return &schedule{groups: map[string]appointment{}, whole: now.Add(regularly), latest: now.Add(regularly)}
}

func (s *schedule) touch(group string, now time.Time) {
	// An appointment that is near stays, so that a group which changes all the time is asked for, too.
	if old, waiting := s.groups[group]; !waiting || old.step > 0 {
		s.groups[group] = appointment{at: now.Add(followUps[0])}
	}
	s.whole = now.Add(settled)
	if s.whole.After(s.latest) {
		s.whole = s.latest
	}
}

// hasten makes the whole due in a second.
func (s *schedule) hasten(now time.Time) {
	if soon := now.Add(time.Second); s.whole.After(soon) {
		s.whole = soon
	}
}

// next is how long there is nothing to do.
func (s *schedule) next(now time.Time) time.Duration {
	wait := s.whole.Sub(now)
	for _, one := range s.groups {
		wait = min(wait, one.at.Sub(now))
	}
	return max(wait, 0)
}

// take removes what is due, and makes the appointments after it.
func (s *schedule) take(now time.Time) (groups []string, whole bool) {
	for group, one := range s.groups {
		if one.at.After(now) {
			continue
		}
		groups = append(groups, group)
		if one.step+1 == len(followUps) {
			delete(s.groups, group)
			continue
		}
		s.groups[group] = appointment{at: now.Add(followUps[one.step+1] - followUps[one.step]), step: one.step + 1}
	}
	if !s.whole.After(now) {
		// Not all clients at once.
		s.whole, whole = now.Add(regularly+rand.N(regularly/5)), true //nolint:gosec // spread, not secrecy
		s.latest = s.whole
	}
	return groups, whole
}
