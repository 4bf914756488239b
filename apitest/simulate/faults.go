package simulate

import (
	"bytes"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// fault is the fault of a request.
type fault int

const (
	noFault      fault = iota
	crashAfter         // the write is executed; the process ends before the response
	responseLost       // the write is executed; the connection is closed without a response
	requestLost        // the connection is closed; the request is not executed
	internalError
	unavailable
	tooManyRequests
	conflict  // as if another client had written the object
	loseLease // renewals fail, and a rival candidate takes the lease
	expired   // the resourceVersion is too old
)

// faultsOf returns the possible faults of a request, in the order of the returned weights.
func faultsOf(r request, req *http.Request, body []byte) ([]fault, alternatives) {
	switch {
	case r.isLease() && r.verb == "update":
		return []fault{loseLease, requestLost, crashAfter}, alternatives{"lease", []int{40, 5, 5}}
	case r.isWrite():
		faults := []fault{crashAfter, responseLost, requestLost, internalError, unavailable, tooManyRequests}
		weights := []int{50, 30, 15, 15, 15, 15}
		if hasPrecondition(r, body) {
			faults = append(faults, conflict)
			weights = append(weights, 50)
		}
		return faults, alternatives{"write", weights}
	case r.verb == "watch" && isFromVersion(req):
		return []fault{expired, requestLost, unavailable}, alternatives{"watch", []int{150, 20, 20}}
	default:
		return []fault{requestLost, internalError, unavailable, tooManyRequests}, alternatives{"read", []int{10, 10, 10, 10}}
	}
}

// hasPrecondition reports whether a write has a resourceVersion as a precondition.
func hasPrecondition(r request, body []byte) bool {
	return (r.verb == "update" || r.verb == "delete") && bytes.Contains(body, []byte(`"resourceVersion":"`)) ||
		r.verb == "patch" && bytes.Contains(body, []byte(`"resourceVersion":"`))
}

func isFromVersion(req *http.Request) bool {
	version := req.URL.Query().Get("resourceVersion")
	return version != "" && version != "0"
}

// errLost returns the error of a request whose connection was closed.
func errLost() error {
	return &net.OpError{Op: "read", Net: "simulated", Err: syscall.ECONNRESET}
}

// response returns the error response of f, or nil if f does not replace the response.
func (f fault) response(req *http.Request, r request) *http.Response {
	plural, group, _ := strings.Cut(r.resource, ".")
	resource := schema.GroupResource{Group: group, Resource: plural}
	var err *apierrors.StatusError
	switch f {
	case internalError:
		err = apierrors.NewInternalError(errSimulated)
	case unavailable:
		err = apierrors.NewServiceUnavailable("simulated: the server is not ready")
	case tooManyRequests:
		err = apierrors.NewTooManyRequests("simulated: too many requests", 1)
	case conflict:
		err = apierrors.NewConflict(resource, r.name, errModified)
	case expired:
		err = apierrors.NewResourceExpired("simulated: too old resource version")
	default:
		return nil
	}
	status := err.Status()
	status.Kind = "Status"
	status.APIVersion = "v1"
	data, _ := json.Marshal(status)
	header := http.Header{"Content-Type": {"application/json"}}
	if f == tooManyRequests {
		header.Set("Retry-After", "1")
	}
	return &http.Response{
		StatusCode: int(status.Code), Status: strconv.Itoa(int(status.Code)) + " " + http.StatusText(int(status.Code)),
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: header, Body: io.NopCloser(bytes.NewReader(data)),
		ContentLength: int64(len(data)), Request: req,
	}
}

func (f fault) String() string {
	return [...]string{
		"", "the process crashes after this write", "executed, but the response is lost", "lost on the way, not executed", "500 Internal Server Error",
		"503 Service Unavailable", "429 Too Many Requests", "409 Conflict", "lost, and so are the next renewals of the lease", "410 Expired",
	}[f]
}

type textError string

func (e textError) Error() string { return string(e) }

const (
	errSimulated textError = "simulated"
	errModified  textError = "the object has been modified; please apply your changes to the latest version and try again"
	errCrashed   textError = "the process has crashed"
)

// delays are the delays of requests, events and workers, indexed by choice.
var delays = [...]time.Duration{0, 5 * time.Millisecond, 50 * time.Millisecond, 500 * time.Millisecond, 3 * time.Second, 15 * time.Second} //nolint:gochecknoglobals // a constant

// outages are the times between a crash and the restart.
var outages = [...]time.Duration{10 * time.Millisecond, time.Second, 15 * time.Second, 45 * time.Second} //nolint:gochecknoglobals // a constant

// stops are the times for which a process is stopped: after its deadline for renewals, and after the expiry of its lease.
var stops = [...]time.Duration{12 * time.Second, 40 * time.Second} //nolint:gochecknoglobals // a constant

// pauses are the times between the users' steps. pauses[0] lets the controller finish.
var pauses = [...]time.Duration{10 * time.Second, 0, 3 * time.Millisecond, 50 * time.Millisecond, time.Second, 30 * time.Second} //nolint:gochecknoglobals // a constant

func (c *choices) delay(key, class string) time.Duration {
	key = "delay of " + key
	delay := delays[c.choose(key, alternatives{"delay of " + class, []int{60, 60, 60, 40, 25}})]
	c.describe(key, delay.String())
	return delay
}
