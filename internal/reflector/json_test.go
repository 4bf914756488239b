package reflector

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/anykind/anykind/internal/testing/scripted"
	"github.com/anykind/anykind/transport"
)

// named decodes the name of an object.
func named(object []byte, event *Event[string]) error {
	err := json.Unmarshal(object, &event.Object)
	event.Name = event.Object
	return err
}

func TestJSONWatch_Events(t *testing.T) {
	const first = `{"type":"ADDED","object":"a"}`
	for name, tc := range map[string]struct {
		body, err   string
		isInvalid   bool
		isForbidden bool
	}{
		"closed":           {body: first, err: "EOF"},
		"cut":              {body: first + `{"type":"MODI`, err: "unexpected EOF"},
		"garbage":          {body: first + `<html>`, err: "invalid character '<' looking for beginning of value", isInvalid: true},
		"not an event":     {body: first + `{"type":1}`, err: "json: cannot unmarshal number into Go struct field .Type of type watch.EventType", isInvalid: true},
		"undecodable":      {body: first + `{"type":"ADDED","object":1}`, err: "json: cannot unmarshal number into Go value of type string", isInvalid: true},
		"too large":        {body: first + `{"type":"ADDED","object":"` + strings.Repeat("a", 2<<20), err: "an event is larger than 1 MiB", isInvalid: true},
		"denied":           {body: first + `{"type":"ERROR","object":{"reason":"Forbidden","code":403,"message":"no\u001b"}}`, err: "no�", isInvalid: true, isForbidden: true},
		"not a Status":     {body: first + `{"type":"ERROR","object":[]}`, err: "decode the server's Status: json: cannot unmarshal array into Go value of type v1.Status", isInvalid: true},
		"events before it": {body: first + `{"type":"BOOKMARK","object":"b"}` + first, err: "EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			var query string
			conn := scripted.Connect(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				query = r.URL.RawQuery
				_, _ = io.WriteString(w, tc.body)
			}), nil)
			source := JSONWatch[string]{Conn: conn, Request: transport.Request{Path: "/names"}, MaxEvent: 1 << 20, Decode: named}
			stream, err := source.Open(t.Context(), metav1.ListOptions{ResourceVersion: "7", AllowWatchBookmarks: true, TimeoutSeconds: new(int64)})
			require.NoError(t, err)
			defer stream.Close()
			assert.Equal(t, "allowWatchBookmarks=true&resourceVersion=7&timeoutSeconds=0&watch=true", query)
			var event Event[string]
			err = stream.Next(&event)
			require.NoError(t, err)
			assert.Equal(t, Event[string]{Key: Key{Name: "a"}, Type: watch.Added, Object: "a"}, event)
			for err == nil {
				err = stream.Next(&event)
			}
			require.EqualError(t, err, tc.err)
			var invalid *InvalidEventError
			assert.Equal(t, tc.isInvalid, errors.As(err, &invalid))
			assert.Equal(t, tc.isForbidden, apierrors.IsForbidden(err))
		})
	}
}

func TestJSONWatch_Rejected(t *testing.T) {
	conn := scripted.Connect(t, scripted.Status(http.StatusForbidden, "Forbidden"), nil)
	_, err := JSONWatch[string]{Conn: conn, Request: transport.Request{Path: "/names"}}.Open(t.Context(), metav1.ListOptions{TimeoutSeconds: new(int64)})
	assert.True(t, apierrors.IsForbidden(err), "%v", err)
}
