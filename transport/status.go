package transport

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/sanitize"
)

const (
	// maxErrorBody limits the body of an error response, after decompression.
	maxErrorBody = 1 << 20
	// maxExcerpt and maxContentType limit the response's text in an error.
	maxExcerpt     = 256
	maxContentType = 1 << 10
)

// statusError returns the error of a response and closes its body: the Status in the body, or a generic Status for the HTTP
// status if the body has none, for example from a proxy.
func statusError(response *http.Response) *apierrors.StatusError {
	body, _ := io.ReadAll(io.LimitReader(response.Body, maxErrorBody))
	_ = response.Body.Close()
	if status, ok := decodeStatus(response, body); ok && status.Status != metav1.StatusSuccess {
		if status.Code == 0 {
			status.Code = int32(response.StatusCode) //nolint:gosec // an HTTP status has three digits
		}
		sanitize.Status(&status)
		return &apierrors.StatusError{ErrStatus: status}
	}
	return genericError(response, string(body))
}

// decodeStatus decodes a Status as JSON or, if the response has its Content-Type, as protobuf: the server encodes errors by the
// request's Accept header, too. It reports whether body is a Status.
func decodeStatus(response *http.Response, body []byte) (status metav1.Status, ok bool) {
	if !strings.HasPrefix(response.Header.Get("Content-Type"), runtime.ContentTypeProtobuf) {
		return status, json.Unmarshal(body, &status) == nil && status.Kind == "Status"
	}
	var envelope runtime.Unknown
	content, _ := bytes.CutPrefix(body, []byte("k8s\x00"))
	ok = envelope.Unmarshal(content) == nil && envelope.Kind == "Status" && status.Unmarshal(envelope.Raw) == nil
	return status, ok
}

// genericError returns the error of a response without a Status. Its reason follows from the code, as in client-go.
func genericError(response *http.Response, body string) *apierrors.StatusError {
	request := response.Request
	seconds, _ := retryAfterSeconds(response)
	excerpt := sanitize.Text(body, maxExcerpt)
	err := apierrors.NewGenericServerResponse(response.StatusCode, request.Method, schema.GroupResource{}, "", excerpt, seconds, true)
	message := fmt.Sprintf("%s %s: the response is %d %s", request.Method, printableURL(request),
		response.StatusCode, http.StatusText(response.StatusCode))
	contentType := response.Header.Get("Content-Type")
	switch {
	case body == "":
		message += " with an empty body"
	case contentType == "":
		message += fmt.Sprintf(" and no Kubernetes Status, but data without a Content-Type: %q", excerpt)
	default:
		message += fmt.Sprintf(" and no Kubernetes Status, but %s: %q", sanitize.Text(contentType, maxContentType), excerpt)
	}
	if strings.HasPrefix(contentType, "text/html") {
		message += " (is a proxy or a login page in front of the API server?)"
	}
	err.ErrStatus.Message = message
	return err
}
