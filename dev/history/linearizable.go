package history

import (
	"fmt"
	"math"
	"time"

	"github.com/anishathalye/porcupine"
)

// maxCheckTime bounds the check of a key. Without a result in time there is no violation.
const maxCheckTime = 10 * time.Second

// requestsLinearizable checks with porcupine that the requests for a key have an order in which each gets a response from the state that
// the requests before it have left. An epoch with unrecorded revisions is left out: the state after them is unknown.
func requestsLinearizable(h *History) (found []Violation) {
	keys := map[ID][]int{}
	for i := range h.Observations {
		if o := &h.Observations[i]; o.Key != 0 && h.Observers[o.Observer].Role == Client {
			keys[o.Key] = append(keys[o.Key], i)
		}
	}
	for key, indexes := range keys {
		for n, epoch := range h.Epochs {
			if !epoch.isComplete() {
				continue
			}
			var within []porcupine.Operation
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
					within = append(within, porcupine.Operation{ClientId: int(o.Observer), Input: request{o, i}, Call: o.Begin, Return: end})
				}
			}
			r := newRegister(epoch, key, within)
			result, info := porcupine.CheckOperationsVerbose(r.model(), within, maxCheckTime)
			if result == porcupine.Illegal {
				found = append(found, h.unordered(n, within, info))
			}
		}
	}
	return found
}

// request is an observation with its index.
type request struct {
	Observation

	index int
}

// unordered returns the violation of requests without a linear order. The longest order of a part lacks requests that had ended: the
// violation is at the first of these, and has all requests of any client at the time.
func (h *History) unordered(epoch int, requests []porcupine.Operation, info porcupine.LinearizationInfo) Violation {
	longest := map[int]bool{}
	state := int64(0)
	for _, order := range info.PartialLinearizationsOperations()[0] {
		if len(order) <= len(longest) {
			continue
		}
		longest = map[int]bool{}
		for _, each := range order {
			o, _ := each.Input.(request)
			longest[o.index] = true
			state = max(state, o.Revision)
		}
	}
	first := porcupine.Operation{Return: math.MaxInt64}
	for _, each := range requests {
		if o, _ := each.Input.(request); !longest[o.index] && each.Return < first.Return {
			first = each
		}
	}
	o, _ := first.Input.(request)
	v := h.violation(o.index, "%d requests have no linear order in epoch %d; the longest order of a part has %d, up to revision %d, without this one",
		len(requests), epoch, len(longest), state)
	v.Around = nil
	for _, each := range requests {
		if shown, _ := each.Input.(request); each.Return >= first.Call-int64(time.Second) && each.Call <= first.Return {
			v.Around = append(v.Around, fmt.Sprintf("%s %s ordered: %v", h.Observers[shown.Observer].Name, h.describe(&shown.Observation), longest[shown.index]))
		}
	}
	for _, e := range around(h.Epochs[epoch].of(o.Key), state) {
		v.Around = append(v.Around, fmt.Sprintf("etcd: %d deleted: %v", e.Revision, e.Deleted()))
	}
	return v
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
		o, _ := each.Input.(request)
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
			o, _ := input.(request)
			return r.step(revision, &o.Observation)
		},
	}
}

// step returns whether a request may get its response in a state, and the next state.
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
