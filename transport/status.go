package transport

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/anykind/anykind/internal/sanitize"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// maxErrorBody bounds what is read of a body that explains a failure, after decompression.
const maxErrorBody = 1 << 20

// statusError makes the error of a refused request and closes its body: the Status in the body, or one made of the
// HTTP status where the body holds none, as when a proxy answers in the server's place.
func statusError(response *http.Response) *apierrors.StatusError {
	body, _ := io.ReadAll(io.LimitReader(response.Body, maxErrorBody))
	_ = response.Body.Close()
	var status metav1.Status
	if json.Unmarshal(body, &status) == nil && status.Kind == "Status" && status.Status != metav1.StatusSuccess {
		if status.Code == 0 {
			status.Code = int32(response.StatusCode) //nolint:gosec // an HTTP status has three digits
		}
		sanitize.Status(&status)
		return &apierrors.StatusError{ErrStatus: status}
	}
	return foreignError(response, string(body))
}

// foreignError is the error of an answer that is no Status. Its reason follows from the code, as in client-go.
func foreignError(response *http.Response, body string) *apierrors.StatusError {
	request := response.Request
	seconds, _ := retryAfterSeconds(response)
	err := apierrors.NewGenericServerResponse(response.StatusCode, request.Method, schema.GroupResource{}, "", excerpt(body), seconds, true)
	message := fmt.Sprintf("%s %s: the answer is %d %s", request.Method, shownURL(request),
		response.StatusCode, http.StatusText(response.StatusCode))
	if body == "" {
		message += " with an empty body"
	} else {
		message += fmt.Sprintf(" and no Kubernetes Status, but %s: %q", sanitize.Text(contentType(response), maxWord), excerpt(body))
	}
	if strings.HasPrefix(contentType(response), "text/html") {
		message += ": does a proxy or a login page stand before the API server?"
	}
	err.ErrStatus.Message = message
	return err
}

func contentType(response *http.Response) string {
	if value := response.Header.Get("Content-Type"); value != "" {
		return value
	}
	return "data without a Content-Type"
}

// excerpt returns the body's beginning, its white space folded.
func excerpt(body string) string { return sanitize.Text(body, 256) }
