package serve

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/net"
	"sigs.k8s.io/yaml"

	"github.com/anykind/anykind/apitest/internal/kinds"
)

// gzipThreshold is the minimum size of compressed bodies.
const gzipThreshold = 128 << 10

// writeObject writes obj in the negotiated form with a status code.
func writeObject(w http.ResponseWriter, req *http.Request, m media, code int, obj any) {
	body, err := encode(m, obj)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	writeBody(w, req, m, code, body)
}

// writeBody writes the parts of a body.
func writeBody(w http.ResponseWriter, req *http.Request, m media, code int, parts ...[]byte) {
	size := 0
	for _, part := range parts {
		size += len(part)
	}
	header := w.Header()
	header.Set("Content-Type", m.contentType())
	header.Set("Cache-Control", "no-cache, private")
	if size > gzipThreshold && acceptsGzip(req) {
		header.Set("Content-Encoding", "gzip")
		header.Add("Vary", "Accept-Encoding")
		w.WriteHeader(code)
		compressor, _ := gzip.NewWriterLevel(w, gzip.BestSpeed)
		for _, part := range parts {
			_, _ = compressor.Write(part)
		}
		_ = compressor.Close()
		return
	}
	header.Set("Content-Length", strconv.Itoa(size))
	w.WriteHeader(code)
	if req.Method == http.MethodHead {
		return
	}
	for _, part := range parts {
		_, _ = w.Write(part)
	}
}

func encode(m media, obj any) ([]byte, error) {
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	if m.pretty && !m.yaml {
		encoder.SetIndent("", "  ")
	}
	if err := encoder.Encode(obj); err != nil {
		return nil, err
	}
	if m.yaml {
		return yaml.JSONToYAML(buffer.Bytes())
	}
	return buffer.Bytes(), nil
}

func acceptsGzip(req *http.Request) bool {
	for part := range strings.SplitSeq(req.Header.Get("Accept-Encoding"), ",") {
		name, _, _ := strings.Cut(strings.TrimSpace(part), ";")
		if name == "gzip" || name == "*" {
			return true
		}
	}
	return false
}

// writeError writes an error as a Status, in JSON or YAML.
func writeError(w http.ResponseWriter, req *http.Request, err error) {
	status := statusOf(err)
	if seconds := retryAfter(status); seconds > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(seconds))
	}
	m, acceptable := negotiate(req, false)
	if !acceptable {
		m = media{pretty: true}
	}
	m.as = ""
	writeObject(w, req, m, int(status.Code), status)
}

func statusOf(err error) metav1.Status {
	var known apierrors.APIStatus
	var status metav1.Status
	if errors.As(err, &known) {
		status = known.Status()
		if status.Code == 0 {
			status.Code = http.StatusInternalServerError
		}
	} else {
		status = metav1.Status{Code: http.StatusInternalServerError, Message: err.Error()}
	}
	if status.Status == "" {
		status.Status = metav1.StatusFailure
	}
	status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	return status
}

func retryAfter(status metav1.Status) int {
	if status.Details == nil {
		return 0
	}
	return int(status.Details.RetryAfterSeconds)
}

// warn adds a Warning header in the format of RFC 2616. Clients show it to their users.
func (c *call) warn(text string) {
	c.record.Warnings = append(c.record.Warnings, text)
	if c.OnNotValidated != nil && IsNotValidated(text) {
		c.OnNotValidated(c.record, text)
		return
	}
	if header, err := net.NewWarningHeader(299, "-", text); err == nil {
		c.w.Header().Add("Warning", header)
	}
}

// IsNotValidated reports whether a warning is about something that the server does not implement.
func IsNotValidated(text string) bool { return strings.HasPrefix(text, "apitest: ") }

// The Statuses of unroutable requests.

func errNoResource() error {
	return genericError(http.StatusNotFound, metav1.StatusReasonNotFound, "the server could not find the requested resource")
}

func errNoMethod() error {
	return genericError(http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed, "the server does not allow this method on the requested resource")
}

// errNotAcceptable has the text of the router of built-in resources, or of the handlers of custom resources.
func (c *call) errNotAcceptable(types string) error {
	if c.resource.Definition != nil || isRouted(c.req) {
		return errNoRepresentation(acceptable)
	}
	return genericError(http.StatusNotAcceptable, metav1.StatusReasonNotAcceptable, "406: Not Acceptable\n\nAvailable representations: "+types)
}

// errNotAcceptableWatch is errNotAcceptable for a watch. The router accepts media types valid for lists only.
func (c *call) errNotAcceptableWatch() error {
	if _, found := negotiate(c.req, false, "Table", "PartialObjectMetadata", "PartialObjectMetadataList"); found {
		return errNoRepresentation(strings.TrimPrefix(acceptableWatch, ", "))
	}
	return c.errNotAcceptable(acceptable + acceptableWatch)
}

func errNoRepresentation(types string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusNotAcceptable, Reason: metav1.StatusReasonNotAcceptable,
		Message: "only the following media types are accepted: " + types,
	}}
}

func errMediaType(types string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusUnsupportedMediaType, Reason: metav1.StatusReasonUnsupportedMediaType,
		Message: "the body of the request was in an unknown format - accepted media types include: " + types,
	}}
}

func genericError(code int, reason metav1.StatusReason, message string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: int32(code), Reason: reason, Message: message, Details: &metav1.StatusDetails{},
	}}
}

func errTooLargeRevision(requested, current int64) error {
	err := apierrors.NewTimeoutError(fmt.Sprintf("Too large resource version: %d, current: %d", requested, current), 1)
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge, Message: "Too large resource version"}}
	return err
}

func errNotFound(resource schema.GroupResource, name string) error {
	return apierrors.NewNotFound(resource, name)
}

// media is the negotiated form of a response.
type media struct {
	yaml   bool
	as     string // "", Table, PartialObjectMetadata or PartialObjectMetadataList
	asOf   string // version of meta.k8s.io: v1 or v1beta1
	pretty bool
}

func (m media) contentType() string {
	if m.yaml {
		return "application/yaml"
	}
	return "application/json" // also for tables and partial metadata
}

const (
	acceptable      = "application/json, application/yaml, application/vnd.kubernetes.protobuf"
	acceptableWatch = ", application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch"
)

// negotiate returns the most preferred supported form of a request. Protobuf and CBOR are skipped, so clients accepting JSON,
// too, get JSON. as are the forms offered besides the object itself.
func negotiate(req *http.Request, isWatch bool, as ...string) (media, bool) {
	m := media{pretty: wantsPretty(req)}
	header := strings.Join(req.Header.Values("Accept"), ",")
	if header == "" {
		return m, true
	}
	for _, clause := range kinds.ParseAccept(header) {
		isYAML := clause.MediaType == "application/yaml"
		if !clause.IsJSON() && (!isYAML || isWatch) {
			continue
		}
		if stream, found := clause.Params["stream"]; found && (!isWatch || stream != "watch") {
			continue
		}
		form := clause.Params["as"]
		if form != "" {
			version := clause.Params["v"]
			if !slices.Contains(as, form) || clause.Params["g"] != "meta.k8s.io" || version != "v1" && version != "v1beta1" {
				continue
			}
			m.as = form
			m.asOf = version
		}
		m.yaml = isYAML
		if pretty, err := strconv.ParseBool(clause.Params["pretty"]); err == nil {
			m.pretty = pretty
		}
		return m, true
	}
	return m, false
}

// isRouted reports whether the router of built-in resources accepts a request. It matches the media types of the Accept header
// without parameters.
func isRouted(req *http.Request) bool {
	for _, clause := range kinds.ParseAccept(strings.Join(req.Header.Values("Accept"), ",")) {
		if clause.IsJSON() || strings.Contains(acceptable, clause.MediaType) {
			return true
		}
	}
	return false
}

// wantsPretty reports whether to indent JSON: by the query, or for browsers, curl and Wget.
func wantsPretty(req *http.Request) bool {
	if values, found := req.URL.Query()["pretty"]; found {
		pretty, err := strconv.ParseBool(values[0])
		return pretty || err != nil && values[0] == ""
	}
	agent := req.UserAgent()
	return strings.HasPrefix(agent, "curl") || strings.HasPrefix(agent, "Wget") || strings.HasPrefix(agent, "Mozilla/5.0")
}
