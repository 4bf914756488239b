package faultproxy

import (
	"math/rand/v2"
	"time"
)

// fault is what happens to one request. The zero fault is none.
type fault struct {
	name   string
	status int           // answered in the server's stead
	expire bool          // the token that was valid is not any more
	drop   bool          // the connection is closed without an answer
	delay  time.Duration // before all else
	breaks bool          // the answer is cut after so many bytes and, first, stalls
	after  int
	stall  time.Duration
	half   bool          // it is cut by closing one direction alone
	life   time.Duration // after which a stream ends as if the server had closed it; 0 is for ever
}

var statuses = map[int]string{
	401: `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"the credential has expired","reason":"Unauthorized","code":401}`,
	410: `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"too old resource version","reason":"Expired","code":410}`,
	422: `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"sendInitialEvents is forbidden","reason":"Invalid","code":422}`,
	429: `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"too many requests","reason":"TooManyRequests","code":429}`,
	500: `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"the server is ill","reason":"InternalError","code":500}`,
	503: `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"the server shuts down","reason":"ServiceUnavailable","code":503}`,
}

// next draws the next request's fault.
func (p *Proxy) next() fault {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.storm {
		return fault{}
	}
	f := draw(p.rng, p.reach)
	if f.expire {
		if err := p.valid.expire(); err != nil {
			f.name = err.Error()
		}
	}
	p.met[f.name]++
	return f
}

// draw draws as many numbers for each fault, so that the schedule is the seed's alone. Answers are cut early as often as
// late, so that faults meet short and long ones in their middle.
func draw(rng *rand.Rand, reach int) fault {
	kind, after, wait := rng.IntN(20), rng.IntN(reach)>>rng.IntN(6), time.Duration(rng.IntN(400))*time.Millisecond
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
		return fault{name: "cut", breaks: true, after: after}
	case 12:
		return fault{name: "half-close", breaks: true, after: after, half: true}
	case 13, 14:
		return fault{name: "stall", breaks: true, after: after, stall: 2 * wait}
	case 15:
		return fault{name: "expiry", expire: true}
	default:
		return fault{name: "end", life: 100*time.Millisecond + 2*wait}
	}
}
