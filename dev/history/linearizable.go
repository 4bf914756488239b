package history

import (
	"math"
	"time"

	"github.com/anishathalye/porcupine"
)

// maxCheckTime bounds the check of a key. Without a result in time there is no violation.
const maxCheckTime = 10 * time.Second

// requestsLinearizable checks with porcupine that the requests for a key have an order in which each is answered by the state that
// the requests before it have left.
func requestsLinearizable(h *History) (found []Violation) {
	keys := map[ID][]int{}
	for i := range h.Observations {
		if o := &h.Observations[i]; o.Key != 0 && h.Observers[o.Observer].Role == Client {
			keys[o.Key] = append(keys[o.Key], i)
		}
	}
	for key, indexes := range keys {
		for n, epoch := range h.Epochs {
			var within []porcupine.Operation
			last := 0
			for _, i := range indexes {
				o := h.Observations[i]
				if h.epochAt(o.Begin) != epoch {
					continue
				}
				if h.epochAt(o.End) != epoch {
					o.Outcome = Unknown
				}
				end := o.End
				if o.Outcome == Unknown {
					end = math.MaxInt64 // it may take effect at any time
				}
				if o.Outcome != Unknown || o.Kind != Get {
					within = append(within, porcupine.Operation{ClientId: int(o.Observer), Input: o, Call: o.Begin, Return: end})
				}
				last = i
			}
			r := newRegister(epoch, key, within)
			if porcupine.CheckOperationsTimeout(r.model(), within, maxCheckTime) == porcupine.Illegal {
				found = append(found, h.violation(last, "%d requests have no linear order in epoch %d", len(within), n))
			}
		}
	}
	return found
}

// register is the model of a key: its state is the revision of the key's last event, deletions included. A request with an unknown
// outcome may have made an event that no accepted request has made.
type register struct {
	initial int64
	next    map[int64]Event // by the revision of the event before
	deleted map[int64]bool  // revisions of deletions
	claimed map[int64]bool  // revisions of accepted requests
}

func newRegister(epoch *Epoch, key ID, operations []porcupine.Operation) *register {
	r := &register{next: map[int64]Event{}, deleted: map[int64]bool{0: true}, claimed: map[int64]bool{}}
	previous := int64(0)
	for _, e := range epoch.of(key) {
		if len(epoch.Gaps) > 0 && e.Revision <= epoch.Gaps[0].Last { // the list at the begin of the epoch
			r.initial = e.Revision
		}
		r.next[previous] = e
		r.deleted[e.Revision] = e.Deleted()
		previous = e.Revision
	}
	for _, each := range operations {
		o, _ := each.Input.(Observation)
		switch {
		case o.Outcome != Accepted || o.Kind == Get:
		case o.Kind == Delete:
			r.claimed[r.next[o.Expected].Revision] = true
		default:
			r.claimed[o.Revision] = true
		}
	}
	return r
}

func (r *register) model() porcupine.Model {
	return porcupine.Model{
		Init: func() any { return r.initial },
		Step: func(state, input, _ any) (bool, any) {
			revision, _ := state.(int64)
			o, _ := input.(Observation)
			return r.step(revision, &o)
		},
	}
}

// step returns whether a request may be answered in a state, and the next state.
func (r *register) step(state int64, o *Observation) (isLegal bool, next int64) {
	exists := !r.deleted[state]
	isMet := exists && state == o.Expected
	if o.Kind == Create {
		isMet = !exists
	}
	switch {
	case o.Kind == Get && o.Revision == 0:
		return !exists, state
	case o.Kind == Get:
		return state == o.Revision, state
	case o.Outcome == Rejected:
		return !isMet, state
	case o.Outcome == Unknown:
		if e, found := r.next[state]; isMet && found && !r.claimed[e.Revision] && e.Deleted() == (o.Kind == Delete) {
			return true, e.Revision
		}
		return true, state
	case o.Kind == Delete:
		return isMet && r.next[state].Deleted(), r.next[state].Revision
	default:
		return isMet, o.Revision
	}
}
