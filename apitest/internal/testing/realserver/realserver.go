// Package realserver gives tests the responses of the sandbox's kube-apiserver to writes, for comparison with apitest.
package realserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/anykind/anykind/apitest/internal/nested"
	"github.com/anykind/anykind/internal/testing/cluster"
	"github.com/anykind/anykind/transport"
)

// Response is the result of a write: an object with warnings, causes, or the message of an error without causes.
type Response struct {
	Object   map[string]any
	Warnings []string
	Causes   []string
	Message  string
}

// Server is the sandbox's API server.
type Server struct{ conn *transport.Conn }

// Connect returns the sandbox's API server, and skips the test without it. Package compare has a Server with a namespace.
func Connect(t testing.TB) *Server {
	t.Helper()
	cfg, err := transport.Load(t.Context(), &transport.LoadOptions{Path: cluster.Kubeconfig(t)})
	require.NoError(t, err)
	conn, err := transport.Open(cfg)
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	return New(conn)
}

// New returns the API server of a connection, for the same requests to apitest.
func New(conn *transport.Conn) *Server { return &Server{conn} }

// Write sends an object and returns the result.
func (s *Server) Write(t testing.TB, method, path string, query url.Values, obj map[string]any) Response {
	t.Helper()
	var body []byte
	if obj != nil {
		var err error
		body, err = json.Marshal(obj)
		require.NoError(t, err)
	}
	mediaType := "application/json"
	if method == http.MethodPatch {
		mediaType = "application/merge-patch+json"
	}
	result, err := s.Send(t, method, path, query, mediaType, body)
	if err != nil {
		return ResponseOf(t, err)
	}
	return result
}

// Send sends a body as it is and returns the result, or the Status as an error.
func (s *Server) Send(t testing.TB, method, path string, query url.Values, mediaType string, body []byte) (Response, error) {
	t.Helper()
	ctx, warnings := transport.CollectWarnings(t.Context())
	response, err := s.conn.Do(ctx, &transport.Request{
		Method: method, Path: path, Query: query, Header: http.Header{"Content-Type": {mediaType}}, Body: body,
	})
	if err != nil {
		return Response{Warnings: warnings.All()}, err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	result := Response{Warnings: warnings.All()}
	require.NoError(t, utiljson.Unmarshal(content, &result.Object))
	return result, nil
}

// Delete deletes an object, also after the test's end.
func (s *Server) Delete(t testing.TB, path string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
	defer cancel()
	response, err := s.conn.Do(ctx, &transport.Request{Method: http.MethodDelete, Path: path})
	if err != nil {
		t.Errorf("delete %s: %v", path, err)
		return
	}
	response.Body.Close()
}

var uidPattern = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)

// ResponseOf converts a Status to a Response, without causes in metadata: package write validates these.
func ResponseOf(t testing.TB, err error) Response {
	t.Helper()
	var status *apierrors.StatusError
	if !errors.As(err, &status) {
		return Response{Message: err.Error()} // of the connection: the server's handler panicked
	}
	if status.ErrStatus.Details == nil || len(status.ErrStatus.Details.Causes) == 0 {
		return Response{Message: status.ErrStatus.Message}
	}
	causes := []string{}
	for _, cause := range status.ErrStatus.Details.Causes {
		if strings.HasPrefix(cause.Field, "metadata.") {
			continue
		}
		message := uidPattern.ReplaceAllString(cause.Message, "UID")
		message = strings.ReplaceAll(message, ",  or ", ", or ") // apimachinery of the next release has a second space
		causes = append(causes, fmt.Sprintf("%s %s: %s", cause.Type, cause.Field, message))
	}
	slices.Sort(causes)
	return Response{Causes: causes}
}

// Normalize removes values specific to a server.
func Normalize(a Response) Response {
	if a.Object == nil {
		return a
	}
	obj := runtime.DeepCopyJSON(a.Object)
	metadata := nested.Map(obj, "metadata")
	uid := nested.String(metadata, "uid")
	for _, name := range []string{"uid", "creationTimestamp", "resourceVersion", "managedFields", "selfLink"} {
		delete(metadata, name)
	}
	content, _ := json.Marshal(obj)
	if uid != "" {
		content = bytes.ReplaceAll(content, []byte(`"`+uid+`"`), []byte(`"UID"`))
	}
	_ = utiljson.Unmarshal(content, &obj)
	a.Object = obj
	return a
}

// Differences returns a line for each differing path of two responses.
func Differences(want, got Response) (lines []string) {
	if want.Message != got.Message {
		lines = append(lines, fmt.Sprintf("message: %q, not %q", got.Message, want.Message))
	}
	for _, cause := range want.Causes {
		if !slices.Contains(got.Causes, cause) {
			lines = append(lines, "missing cause: "+cause)
		}
	}
	for _, cause := range got.Causes {
		if !slices.Contains(want.Causes, cause) {
			lines = append(lines, "additional cause: "+cause)
		}
	}
	onlyMetadata := want.Causes != nil && len(want.Causes) == 0
	if (want.Object == nil) != (got.Object == nil) && len(lines) == 0 && !onlyMetadata {
		lines = append(lines, "one is accepted, the other is not")
	}
	for _, warning := range want.Warnings {
		if !slices.Contains(got.Warnings, warning) {
			lines = append(lines, "missing warning: "+warning)
		}
	}
	for _, warning := range got.Warnings {
		if !slices.Contains(want.Warnings, warning) {
			lines = append(lines, "additional warning: "+warning)
		}
	}
	if want.Object != nil && got.Object != nil {
		lines = append(lines, valueDifferences("", want.Object, got.Object)...)
	}
	slices.Sort(lines)
	return lines
}

func valueDifferences(path string, want, got any) (lines []string) {
	wantFields, ok1 := want.(map[string]any)
	gotFields, ok2 := got.(map[string]any)
	if ok1 && ok2 {
		for name := range wantFields {
			if _, ok := gotFields[name]; !ok {
				lines = append(lines, fmt.Sprintf("%s.%s: absent, not %v", path, name, wantFields[name]))
				continue
			}
			lines = append(lines, valueDifferences(path+"."+name, wantFields[name], gotFields[name])...)
		}
		for name := range gotFields {
			if _, ok := wantFields[name]; !ok {
				lines = append(lines, fmt.Sprintf("%s.%s: %v, not absent", path, name, gotFields[name]))
			}
		}
		return lines
	}
	wantItems, ok1 := want.([]any)
	gotItems, ok2 := got.([]any)
	if ok1 && ok2 && len(wantItems) == len(gotItems) {
		for i := range wantItems {
			lines = append(lines, valueDifferences(fmt.Sprintf("%s[%d]", path, i), wantItems[i], gotItems[i])...)
		}
		return lines
	}
	if !reflect.DeepEqual(want, got) {
		lines = append(lines, fmt.Sprintf("%s: %v, not %v", path, got, want))
	}
	return lines
}
