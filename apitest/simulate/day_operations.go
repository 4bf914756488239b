package simulate

import (
	"context"
	"fmt"
	"strconv"
	"time"
)

const (
	// Operations begin between these minutes of an hour. Their effects have passed at the end of the hour.
	firstMinute = 3
	lastMinute  = 45
)

// operation is an event of a day.
type operation struct {
	at   time.Duration
	name string
	do   func()
}

// operationKind is a kind of operation with its number in 24 hours.
type operationKind struct {
	count int
	make  func(d *day, key string) (name string, do func())
}

// operationKinds are the operations of a day.
func operationKinds() map[string]operationKind {
	return map[string]operationKind{
		"crash":          {8, (*day).crashProcess},
		"rolling update": {3, (*day).restartProcesses},
		"node":           {2, (*day).crashAll},
		"server":         {6, (*day).restartServer},
		"compaction":     {4, (*day).compact},
		"upgrade":        {1, (*day).upgrade},
		"rotation":       {6, (*day).rotate},
		"clock":          {6, (*day).jump},
		"stop":           {8, (*day).stopLeader},
	}
}

// drawOperations returns the operations of the day: each kind at least once.
func (d *day) drawOperations() (planned []operation) {
	kinds := operationKinds()
	for _, kind := range sortedKeys(kinds) {
		count := max(1, int(float64(kinds[kind].count)*d.duration().Hours()/24))
		for n := range count {
			key := kind + " " + strconv.Itoa(n)
			hour := d.random("hour of "+key, d.duration()).Truncate(time.Hour)
			hour = min(hour, time.Duration(d.hours()-1)*time.Hour)
			at := hour + firstMinute*time.Minute + d.random("minute of "+key, (lastMinute-firstMinute)*time.Minute)
			name, do := kinds[kind].make(d, key)
			planned = append(planned, operation{at, name, do})
		}
	}
	return planned
}

// choose returns one of the alternatives of an operation.
func choose[T any](d *day, key string, from ...T) T {
	return from[d.run.choices.hash("choice of "+key)%uint64(len(from))]
}

func (d *day) crashProcess(key string) (string, func()) {
	number := int(d.random("process of "+key, time.Duration(len(d.run.processes)))) //nolint:gosec // small
	return "kills a process", func() { d.run.currentProcess(number).crash() }
}

func (d *day) crashAll(string) (string, func()) {
	return "kills all processes", func() {
		for number := range d.run.processes {
			d.run.currentProcess(number).crash()
		}
	}
}

// restartProcesses restarts the processes one after another, like a rolling update.
func (d *day) restartProcesses(key string) (string, func()) {
	r := d.run
	gap := choose(d, key, 0, 3*time.Second, 30*time.Second)
	return "restarts the processes " + gap.String() + " after each other", func() {
		for number := range r.processes {
			p := r.currentProcess(number)
			p.isTerminated = true
			p.cancel(context.Canceled)
			select {
			case <-p.ended:
			case <-r.ctx.Done():
				return
			case <-time.After(maxEndDelay):
				r.fail("end", fmt.Errorf("the function Run has not returned %s after its ctx ended", maxEndDelay))
				return
			}
			if r.scheduler.wait(r.ctx, "process "+strconv.Itoa(number)+" of "+key, gap) != nil {
				return
			}
		}
	}
}

func (d *day) restartServer(key string) (string, func()) {
	down := choose(d, key, 0, 2*time.Second, 15*time.Second, time.Minute)
	isCompacted := choose(d, key+" compacts", true, false)
	name := fmt.Sprintf("restarts the server, which is away for %s", down)
	if isCompacted {
		name += " and compacts its history"
	}
	return name, func() {
		d.restart(down)
		if isCompacted {
			d.run.server.Compact()
		}
	}
}

func (d *day) restart(down time.Duration) {
	r := d.run
	r.disturb(down)
	r.mu.Lock()
	r.downUntil = time.Now().Add(down + latency)
	r.mu.Unlock()
	if err := r.server.Restart(down); err != nil && r.ctx.Err() == nil {
		r.fail("server", err)
	}
}

func (d *day) compact(string) (string, func()) {
	return "compacts the server's history", func() { d.run.server.Compact() }
}

// upgrade replaces the server by one of the next minor version.
func (d *day) upgrade(string) (string, func()) {
	return "upgrades the server", func() {
		d.isNewer.Store(true)
		d.restart(time.Minute)
	}
}

// rotate revokes the program's token. The file with the new token is written after a while.
func (d *day) rotate(key string) (string, func()) {
	r := d.run
	late := choose(d, key, 0, 3*time.Second, 40*time.Second, 3*time.Minute)
	return "rotates the program's token; the new one is in its file after " + late.String(), func() {
		r.disturb(late + time.Minute)
		r.server.SetUsers(d.nextUsers())
		if r.scheduler.wait(r.ctx, "new token of "+key, late) != nil {
			return
		}
		if err := d.writeToken(); err != nil {
			r.fail("server", err)
		}
	}
}

func (d *day) jump(key string) (string, func()) {
	by := choose(d, key, -24*time.Hour, -time.Minute, -time.Second, time.Second, time.Minute, 24*time.Hour)
	return fmt.Sprintf("lets the server's clock jump by %s", by), func() { d.run.server.Clock().Jump(by) }
}

// stopLeader stops the holder of a lease, or any process if there is none.
func (d *day) stopLeader(key string) (string, func()) {
	number := int(d.random("process of "+key, time.Duration(len(d.run.processes)))) //nolint:gosec // small
	stop := choose(d, key, 12*time.Second, 40*time.Second, 40*time.Second, 10*time.Minute)
	return "stops the leader for " + stop.String(), func() {
		p := d.run.currentProcess(number)
		if leader := d.run.leader(); leader != nil {
			p = leader
		}
		p.suspend(stop)
	}
}
