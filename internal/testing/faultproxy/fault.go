package faultproxy

import (
	"math/rand/v2"
	"time"
)

// fault is the fault of a request. The zero value means no fault.
type fault struct {
	name     string
	status   int           // status of an error response in place of the server's
	expire   bool          // the token expires
	drop     bool          // the connection is closed without a response
	delay    time.Duration // delay before the request is handled
	cut      bool          // the response is cut after cutAfter bytes, after a stall
	cutAfter int
	stall    time.Duration
	half     bool          // the cut closes one direction only
	life     time.Duration // lifetime of a stream until the server closes it; 0 means no limit
}

var statuses = map[int]string{
	401: `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"the credential has expired","reason":"Unauthorized","code":401}`,
	410: `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"too old resource version","reason":"Expired","code":410}`,
	422: `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"sendInitialEvents is forbidden","reason":"Invalid","code":422}`,
	429: `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"too many requests","reason":"TooManyRequests","code":429}`,
	500: `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"the server is ill","reason":"InternalError","code":500}`,
	503: `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"the server shuts down","reason":"ServiceUnavailable","code":503}`,
}

// next returns the fault of the next request.
func (p *Proxy) next() fault {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.storm {
		return fault{}
	}
	f := draw(p.rng, p.maxCut)
	if f.expire {
		if err := p.valid.expire(); err != nil {
			f.name = err.Error()
		}
	}
	p.faults[f.name]++
	return f
}

// draw consumes the same number of random values for each fault, so that the schedule depends on the seed alone. cutAfter
// varies by orders of magnitude: both short and long responses are cut in the middle.
func draw(rng *rand.Rand, maxCut int) fault {
	kind := rng.IntN(20)
	cutAfter := rng.IntN(maxCut) >> rng.IntN(6)
	wait := time.Duration(rng.IntN(400)) * time.Millisecond
	switch kind {
	case 0:
		return fault{name: "410", status: 410}
	case 1:
		return fault{name: "429", status: 429}
	case 2:
		return fault{name: "500", status: 500}
	case 3:
		return fault{name: "503", status: 503}
	case 4, 5:
		return fault{name: "drop", drop: true}
	case 6, 7:
		return fault{name: "delay", delay: wait}
	case 8, 9, 10, 11:
		return fault{name: "cut", cut: true, cutAfter: cutAfter}
	case 12:
		return fault{name: "half-close", cut: true, cutAfter: cutAfter, half: true}
	case 13, 14:
		return fault{name: "stall", cut: true, cutAfter: cutAfter, stall: 2 * wait}
	case 15:
		return fault{name: "expiry", expire: true}
	default:
		return fault{name: "end", life: 100*time.Millisecond + 2*wait}
	}
}
