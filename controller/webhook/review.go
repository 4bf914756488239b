package webhook

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/cache"
)

const (
	// defaultMaxAdmission is the limit of controller-runtime: an update has two objects of up to 3 MiB.
	defaultMaxAdmission = 7 << 20
	// defaultMaxConversion is the limit of a page that is held whole. The server sends all objects of a list in one review, and
	// controller-runtime has no limit.
	defaultMaxConversion = 256 << 20
)

// Options configure a webhook. nil and zero values mean the defaults.
type Options struct {
	// MaxBody is the maximum size of a request's body in bytes; 0 means 7 MiB for admission, and 256 MiB for conversion: the server
	// sends all objects of a list at once.
	MaxBody int64
	// OnRequest is called after every request, for metrics. Calls are concurrent.
	OnRequest func(RequestResult)
	// Logger receives the panics of the webhook's function; nil means slog.Default().
	Logger *slog.Logger
}

// RequestResult is the result of a request.
type RequestResult struct {
	// Path is the path of the request's URL.
	Path string
	// UID is the UID of the review, "" for a request without a valid review.
	UID      types.UID
	Duration time.Duration
	// Allowed reports that a request was admitted or that objects were converted.
	Allowed bool
	// Code is the HTTP status code: of the review's status, 200 if it is allowed, or of a response without a review.
	Code int
	// Err is the reason of a rejected request: the function's error, or a [*cache.PanicError].
	Err error
}

// review is an AdmissionReview or a ConversionReview.
type review[Request, Response any] struct {
	metav1.TypeMeta `json:",inline"`
	Request         *Request  `json:"request,omitempty"`
	Response        *Response `json:"response,omitempty"`
}

// httpError is the text and the code of a response without a review.
type httpError struct {
	code int
	text string
}

func (e *httpError) Error() string { return e.text }

func errorf(code int, format string, args ...any) error {
	return &httpError{code, fmt.Sprintf(format, args...)}
}

// outcome is a response with its values for OnRequest.
type outcome[Response any] struct {
	uid      types.UID
	response *Response
	code     int // 200 if the request is allowed
	err      error
}

// handler serves the reviews of a group and kind.
type handler[Request, Response any] struct {
	opts        Options
	group, kind string
	respond     func(ctx context.Context, r *Request) outcome[Response]
}

func newHandler[Request, Response any](group, kind string, opts *Options, defaultMaxBody int64, respond func(context.Context, *Request) outcome[Response]) http.Handler {
	h := &handler[Request, Response]{*cmp.Or(opts, &Options{}), group, kind, respond}
	h.opts.MaxBody = cmp.Or(h.opts.MaxBody, defaultMaxBody)
	h.opts.Logger = cmp.Or(h.opts.Logger, slog.Default())
	return h
}

func (h *handler[Request, Response]) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	start := time.Now()
	result := RequestResult{Path: r.URL.Path}
	defer func() {
		if h.opts.OnRequest != nil {
			result.Duration = time.Since(start)
			h.opts.OnRequest(result)
		}
	}()
	reviewed, timeout, err := h.read(w, r)
	if rejected, ok := errors.AsType[*httpError](err); ok {
		result.Code = rejected.code
		result.Err = err
		if rejected.code == http.StatusMethodNotAllowed {
			w.Header().Set("Allow", http.MethodPost)
		}
		http.Error(w, rejected.text, rejected.code)
		return
	}
	ctx := r.Context()
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	out := h.respond(ctx, reviewed.Request)
	result.UID = out.uid
	result.Code = out.code
	result.Allowed = out.code == http.StatusOK
	result.Err = out.err
	if panicked, ok := errors.AsType[*cache.PanicError](out.err); ok {
		h.opts.Logger.Error("webhook panicked", "path", r.URL.Path, "uid", out.uid, "error", panicked, "stack", string(panicked.Stack))
	}
	reviewed.Request = nil
	reviewed.Response = out.response
	body, err := json.Marshal(reviewed)
	if err != nil { // a response of text and decoded JSON
		result = RequestResult{Path: r.URL.Path, UID: out.uid, Code: http.StatusInternalServerError, Err: err}
		http.Error(w, "encode the review: "+err.Error(), result.Code)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(body)
}

// read returns the review and the timeout of a request. Its errors are httpErrors.
func (h *handler[Request, Response]) read(w http.ResponseWriter, r *http.Request) (*review[Request, Response], time.Duration, error) {
	if r.Method != http.MethodPost {
		return nil, 0, errorf(http.StatusMethodNotAllowed, "method %s is not supported (POST %s)", r.Method, h.kind)
	}
	if mediaType, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); mediaType != "application/json" {
		return nil, 0, errorf(http.StatusUnsupportedMediaType, "content type %q is not supported (send application/json)", r.Header.Get("Content-Type"))
	}
	var timeout time.Duration
	if text := r.URL.Query().Get("timeout"); text != "" {
		var err error
		if timeout, err = time.ParseDuration(text); err != nil || timeout <= 0 {
			return nil, 0, errorf(http.StatusBadRequest, "invalid timeout %q", text)
		}
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, h.opts.MaxBody))
	if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, 0, errorf(http.StatusRequestEntityTooLarge, "the body is larger than %d bytes", tooLarge.Limit)
	}
	if err != nil {
		return nil, 0, errorf(http.StatusBadRequest, "read the body: %v", err)
	}
	reviewed := new(review[Request, Response])
	if err := json.Unmarshal(body, reviewed); err != nil {
		return nil, 0, errorf(http.StatusBadRequest, "decode %s: %v", h.kind, err)
	}
	versions := []string{h.group + "/v1", h.group + "/v1beta1"}
	if reviewed.Kind != h.kind || !slices.Contains(versions, reviewed.APIVersion) {
		return nil, 0, errorf(http.StatusBadRequest, "unknown review %q of %q (send %s of %s)", reviewed.Kind, reviewed.APIVersion, h.kind, strings.Join(versions, " or "))
	}
	if reviewed.Request == nil {
		return nil, 0, errorf(http.StatusBadRequest, "%s has no request", h.kind)
	}
	return reviewed, timeout, nil
}

// contain is a deferred function that sets err to a [*cache.PanicError] after a panic.
func contain(err *error, function string) {
	if value := recover(); value != nil {
		*err = &cache.PanicError{Where: function, Value: value, Stack: debug.Stack()}
	}
}
