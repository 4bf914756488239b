package history

import (
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

func TestSentBefore_Cases(t *testing.T) {
	assertProperty(t, sentBefore, []testCase{
		{"sent versions, a write and missing objects", `
			etcd put a 5; etcd put a 6; etcd delete a 7; server ADDED a 5; follow Added a#1 5; server MODIFIED a 6; server DELETED a 7;
			follow Deleted a#1 7; reader Read a; writer Wrote a#1 9`},
		{"no messages are recorded", `etcd put a 5; follow Added a#1 5`},
	}, []testCase{
		{"a version that was not sent", `server ADDED a 5; reader Read a#1 6`},
		{"a version that was sent later", `follow Added a#1 5; server ADDED a 5`},
		{"the deletion at another revision", `server ADDED a 5; server DELETED a 7; follow Deleted a#1 6`},
	})
}

func TestViolation_HasMessages(t *testing.T) {
	h := parse(t, `etcd put a 5; etcd put a 7; server ADDED a 7; follow Added a#1 7; server MODIFIED a 5; follow Modified a#1 5`)
	found := h.Check()
	require.Len(t, found, 1)
	assert.Equal(t, []string{
		"0.000000s follow Added a uid 1 revision 7",
		"0.000000s follow Modified a uid 1 revision 5",
		"0.000000s server: ADDED at 7: GET /",
		"0.000000s server: MODIFIED at 5: GET /",
		"etcd, epoch 0: put at 5",
		"etcd, epoch 0: put at 7",
	}, found[0].Around)
}

// encode returns an object in an envelope of protobuf.
func encode(t *testing.T, obj interface{ Marshal() ([]byte, error) }) []byte {
	t.Helper()
	raw, err := obj.Marshal()
	require.NoError(t, err)
	envelope, err := (&runtime.Unknown{Raw: raw}).Marshal()
	require.NoError(t, err)
	return append([]byte(protobufPrefix), envelope...)
}

func newMetadata(name, resourceVersion string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name, ResourceVersion: resourceVersion}}
}

// watchFrames returns an event and a bookmark in protobuf.
func watchFrames(t *testing.T) (frames string) {
	t.Helper()
	bookmark := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "9"}}
	for _, event := range []metav1.WatchEvent{
		{Type: "ADDED", Object: runtime.RawExtension{Raw: encode(t, newMetadata("a", "7"))}},
		{Type: "BOOKMARK", Object: runtime.RawExtension{Raw: encode(t, bookmark)}},
	} {
		frame, err := event.Marshal()
		require.NoError(t, err)
		frames += string(binary.BigEndian.AppendUint32(nil, uint32(len(frame)))) + string(frame)
	}
	return frames
}

func TestRecorder_RecordResponse(t *testing.T) {
	list := &metav1.PartialObjectMetadataList{ListMeta: metav1.ListMeta{ResourceVersion: "8"}, Items: []metav1.PartialObjectMetadata{*newMetadata("a", "7")}}
	const (
		configMapsPath = "/api/v1/namespaces/n/configmaps"
		event          = `{"type":"ADDED","object":{"metadata":{"name":"a","namespace":"n","resourceVersion":"7"}}}` + "\n"
		bookmark       = `{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"9"}}}` + "\n"
	)
	for _, c := range []struct {
		name, path, encoding, body string
		status                     int
		want                       []string
	}{
		{"watch", configMapsPath + "?watch=true", "application/json;stream=watch", event + bookmark + event[:10], 200, []string{"ADDED n/a 7", "BOOKMARK n/ 9"}},
		{"watch before its line break", configMapsPath + "?watch=true", "application/json", strings.TrimSpace(event), 200, []string{"ADDED n/a 7"}},
		{"watch of protobuf", configMapsPath + "?watch=1", "application/vnd.kubernetes.protobuf;stream=watch", watchFrames(t), 200, []string{"ADDED n/a 7", "BOOKMARK n/ 9"}},
		{"list", configMapsPath, "application/json", `{"metadata":{"resourceVersion":"8"},"items":[{"metadata":{"name":"a","namespace":"n","resourceVersion":"7"}}]}`, 200,
			[]string{"item n/a 7", "list of 1 items n/ 8"}},
		{"list of protobuf", "/api/v1/configmaps", "application/vnd.kubernetes.protobuf", string(encode(t, list)), 200, []string{"item n/a 7", "list of 1 items  8"}},
		{"object", configMapsPath + "/a", "application/json", `{"metadata":{"name":"a","namespace":"n","resourceVersion":"7"}}`, 200, []string{"object n/a 7"}},
		{"error", configMapsPath, "application/json", `{}`, 410, nil},
		{"invalid event", configMapsPath + "?watch=true", "application/json", "x\n", 200, []string{"frame that is no event n/ 0"}},
		{"invalid list", configMapsPath, "application/json", "x", 200, []string{"body that is no object n/ 0"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := NewRecorder()
			response := &http.Response{
				StatusCode: c.status, Status: fmt.Sprint(c.status), Header: http.Header{"Content-Type": {c.encoding}},
				Body: io.NopCloser(iotest.OneByteReader(strings.NewReader(c.body))), Request: httptest.NewRequest(http.MethodGet, c.path, nil),
			}
			r.RecordResponse(1, map[string]string{"configmaps": "/registry/configmaps/"}, response)
			body, err := io.ReadAll(response.Body)
			require.NoError(t, err)
			assert.Equal(t, c.body, string(body))
			var got []string
			for _, a := range r.messages {
				got = append(got, fmt.Sprint(r.texts[a.Type], " ", strings.TrimPrefix(r.texts[a.Key], "/registry/configmaps/"), " ", a.Revision))
				assert.Contains(t, r.texts[a.Request], "GET "+c.path)
			}
			require.NotEmpty(t, got)
			assert.Equal(t, fmt.Sprint(c.status), strings.Fields(got[0])[0])
			assert.Equal(t, c.want, append([]string(nil), got[1:]...))
		})
	}
}

func TestRecorder_IgnoresOtherResponses(t *testing.T) {
	r := NewRecorder()
	for _, request := range []*http.Request{
		httptest.NewRequest(http.MethodPut, "/api/v1/namespaces/n/configmaps/a", nil), httptest.NewRequest(http.MethodGet, "/api/v1/namespaces/n/pods", nil),
	} {
		r.RecordResponse(1, map[string]string{"configmaps": "/registry/configmaps/"}, &http.Response{Request: request})
	}
	assert.Empty(t, r.messages)
}
