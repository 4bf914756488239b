package serve

import (
	"bufio"
	"net"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"
)

// Record is a request as the server's history has it. The body is that of the request.
type Record struct {
	RequestInfo
	Time        time.Time
	Duration    time.Duration
	Method      string
	Path, Query string
	User        string
	UserAgent   string
	ContentType string
	Body        []byte
	Code        int   // of the response; 0 if there was none
	Revision    int64 // of the store when the request arrived
}

func newRecord(req *http.Request, info *RequestInfo, now time.Time, revision int64) *Record {
	return &Record{
		RequestInfo: *info, Time: now, Method: req.Method, Path: req.URL.Path, Query: req.URL.RawQuery,
		UserAgent: req.UserAgent(), ContentType: req.Header.Get("Content-Type"), Revision: revision,
	}
}

// statusRecorder keeps the status code of a response.
type statusRecorder struct {
	http.ResponseWriter
	code int
}

// WriteHeader implements http.ResponseWriter.
func (r *statusRecorder) WriteHeader(code int) {
	if r.code == 0 {
		r.code = code
	}
	r.ResponseWriter.WriteHeader(code)
}

// Write implements http.ResponseWriter.
func (r *statusRecorder) Write(data []byte) (int, error) {
	if r.code == 0 {
		r.code = http.StatusOK
	}
	return r.ResponseWriter.Write(data)
}

// Hijack implements http.Hijacker, for connections that are upgraded.
func (r *statusRecorder) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	if r.code == 0 {
		r.code = http.StatusSwitchingProtocols
	}
	return http.NewResponseController(r.ResponseWriter).Hijack()
}

// Unwrap is for http.ResponseController.
func (r *statusRecorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

func newID() string { return string(uuid.NewUUID()) }
