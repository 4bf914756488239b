package dynamic_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/protobuf"
	testclient "github.com/anykind/anykind/internal/testing/client"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured"
)

// newerServer makes the sandbox's API server a newer one: its protobuf of objects with the word newField has a field that no table
// has.
type newerServer struct {
	http.RoundTripper
	t    *testing.T
	sent *atomic.Int64 // objects with the field
}

const newField = "sent-by-a-newer-server"

// RoundTrip implements http.RoundTripper.
func (s *newerServer) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := s.RoundTripper.RoundTrip(r)
	if err != nil || !strings.HasPrefix(response.Header.Get("Content-Type"), protobufType) {
		return response, err
	}
	response.ContentLength = -1
	response.Header.Del("Content-Length")
	body := response.Body
	if r.URL.Query().Get("watch") != "" {
		response.Body = closableReader{&newerEvents{src: body, server: s}, body}
		return response, nil
	}
	defer body.Close()
	data, err := io.ReadAll(body)
	if err != nil {
		return nil, err
	}
	response.Body = io.NopCloser(bytes.NewReader(s.rewrite(data)))
	return response, nil
}

type closableReader struct {
	io.Reader
	io.Closer
}

// rewrite adds the field to the objects in an envelope.
func (s *newerServer) rewrite(body []byte) []byte {
	envelope := runtime.Unknown{}
	raw, isEnveloped := bytes.CutPrefix(body, []byte("k8s\x00"))
	if !isEnveloped || envelope.Unmarshal(raw) != nil {
		return body
	}
	if !strings.HasSuffix(envelope.Kind, "List") {
		return enveloped(s.t, envelope.Kind, s.newer(envelope.Raw))
	}
	var message []byte
	for data := envelope.Raw; len(data) > 0; {
		tag, n := binary.Uvarint(data)
		size, m := binary.Uvarint(data[n:])
		content := data[n+m:][:size]
		data = data[n+m:][size:]
		if tag == 2<<3|2 {
			content = s.newer(content)
		}
		message = append(message, delimited(int(tag>>3), content)...)
	}
	return enveloped(s.t, envelope.Kind, message)
}

func (s *newerServer) newer(message []byte) []byte {
	if bytes.Contains(message, []byte(newField)) {
		s.sent.Add(1)
		return newer(message)
	}
	return message
}

// newerEvents rewrites the events of a watch.
type newerEvents struct {
	src    io.Reader
	server *newerServer
	rest   []byte
}

func (e *newerEvents) Read(p []byte) (int, error) {
	for len(e.rest) == 0 {
		var size [4]byte
		if _, err := io.ReadFull(e.src, size[:]); err != nil {
			return 0, err
		}
		frame := make([]byte, binary.BigEndian.Uint32(size[:]))
		if _, err := io.ReadFull(e.src, frame); err != nil {
			return 0, err
		}
		var event metav1.WatchEvent
		if err := event.Unmarshal(frame); err != nil {
			return 0, err
		}
		event.Object.Raw = e.server.rewrite(event.Object.Raw)
		encoded, err := event.Marshal()
		if err != nil {
			return 0, err
		}
		e.rest = append(binary.BigEndian.AppendUint32(nil, uint32(len(encoded))), encoded...)
	}
	n := copy(p, e.rest)
	e.rest = e.rest[n:]
	return n, nil
}

// connectNewer returns a client with protobuf of a newer server, and the number of objects sent with the field.
func connectNewer(t *testing.T) (client *dynamic.Client, sent *atomic.Int64) {
	t.Helper()
	sent = &atomic.Int64{}
	client = testclient.Connect(t, "admin", func(cfg *transport.Config) {
		cfg.Protobuf = true
		cfg.DisableCompression = true
		cfg.WrapTransport = func(next http.RoundTripper) http.RoundTripper { return &newerServer{next, t, sent} }
	})
	return client, sent
}

// TestProtobuf_FallbackLosesNothing reads objects of which some have an unknown field, with each verb and form.
func TestProtobuf_FallbackLosesNothing(t *testing.T) {
	following, _ := connectNewer(t)
	stored := createSecrets(t, following)
	for name, read := range fallbackReads {
		t.Run(name, func(t *testing.T) {
			newer, sent := connectNewer(t)
			stored.check(t, read(stored.of(t, newer), t))
			if strings.HasPrefix(name, "initial") {
				assert.Zero(t, sent.Load())
				assert.Empty(t, newer.JSONKinds())
			} else {
				assert.Positive(t, sent.Load())
				assert.Equal(t, []schema.GroupVersionKind{{Version: "v1", Kind: "Secret"}}, newer.JSONKinds())
			}
		})
	}
}

// TestProtobuf_OlderTableLosesNothing is the same with a table that lacks a field of the server.
func TestProtobuf_OlderTableLosesNothing(t *testing.T) {
	t.Cleanup(protobuf.Replace(withoutFields("core/v1.Secret 5 immutable")))
	following, _ := connectRecording(t, true)
	stored := createSecrets(t, following)
	for name, read := range fallbackReads {
		t.Run(name, func(t *testing.T) {
			older, received := connectRecording(t, true)
			r := stored.of(t, older)
			received()
			stored.check(t, read(r, t))
			types := received()
			assert.Positive(t, types["application/json"], "the fallback")
			assert.Equal(t, !strings.HasPrefix(name, "initial"), types[protobufType] > 0)
		})
	}
}

// withoutFields returns a change of the table of protobuf messages: it drops fields, each as "message number name", and kinds, each as
// "=apiVersion kind".
func withoutFields(dropped ...string) func(table string) string {
	return func(table string) string {
		var kept strings.Builder
		message := ""
		for line := range strings.Lines(table) {
			words := strings.Fields(line)
			id := strings.Join(words[:min(2, len(words))], " ")
			switch {
			case strings.HasPrefix(line, "\t"):
				id = message + " " + id
			case len(words) == 1:
				message = words[0]
			}
			if !slices.Contains(dropped, id) {
				kept.WriteString(line)
			}
		}
		return kept.String()
	}
}

// storedSecrets are the objects of a test by name.
type storedSecrets struct {
	namespace string
	version   string // before the first object
	created   map[string]*unstructured.Object
}

// createSecrets creates objects while a client follows. Some of them have fields that tests take for unknown ones.
func createSecrets(t *testing.T, following *dynamic.Client) *storedSecrets {
	t.Helper()
	c, namespace := newNamespace(t)
	direct := resource(t, c, "secrets").Namespace(namespace)
	start, err := direct.ListPage(t.Context(), nil)
	require.NoError(t, err)
	stored := &storedSecrets{namespace, start.ResourceVersion, map[string]*unstructured.Object{}}
	changes := stored.of(t, following)
	synced := make(chan struct{})
	received := make(chan []*unstructured.Object, 1)
	go func() { received <- changes.follow(t, &dynamic.FollowOptions{Intern: true}, synced) }()
	<-synced
	for i := range fallbackObjects {
		secret := map[string]any{"metadata": map[string]any{"name": fmt.Sprint("s", i)}, "type": "Opaque"}
		if i%7 == 5 {
			secret["type"] = newField
			secret["immutable"] = true
		}
		obj, err := direct.Create(t.Context(), &unstructured.Object{Object: secret}, nil)
		require.NoError(t, err)
		stored.created[obj.GetName()] = obj
	}
	stored.check(t, <-received)
	return stored
}

func (s *storedSecrets) of(t *testing.T, c *dynamic.Client) fallbackRead {
	t.Helper()
	return fallbackRead{r: resource(t, c, "secrets").Namespace(s.namespace), version: s.version}
}

func (s *storedSecrets) check(t *testing.T, got []*unstructured.Object) {
	t.Helper()
	assert.Len(t, got, len(s.created), "each object once")
	for _, obj := range got {
		assert.Equal(t, s.created[obj.GetName()], obj)
	}
}

const fallbackObjects = 20

// fallbackRead reads all objects.
type fallbackRead struct {
	r       *dynamic.Resource
	version string // before the first object
}

var fallbackReads = map[string]func(fallbackRead, *testing.T) []*unstructured.Object{
	"get": func(f fallbackRead, t *testing.T) (all []*unstructured.Object) {
		for i := range fallbackObjects {
			obj, err := f.r.Get(t.Context(), fmt.Sprint("s", i), nil)
			require.NoError(t, err)
			all = append(all, obj)
		}
		return all
	},
	"list":  func(f fallbackRead, t *testing.T) []*unstructured.Object { return allListed(t, f.r) },
	"pages": func(f fallbackRead, t *testing.T) []*unstructured.Object { return listedBy(t, f.r, 4) },
	"lazy pages": func(f fallbackRead, t *testing.T) []*unstructured.Object {
		return decoded(t, listedBy(t, dynamic.As[unstructured.Lazy](f.r), 4))
	},
	"a page": func(f fallbackRead, t *testing.T) []*unstructured.Object {
		page, err := f.r.ListPage(t.Context(), nil)
		require.NoError(t, err)
		return page.Items
	},
	"watch": func(f fallbackRead, t *testing.T) []*unstructured.Object {
		return watched(t, f.r, &metav1.ListOptions{ResourceVersion: f.version})
	},
	"lazy watch": func(f fallbackRead, t *testing.T) []*unstructured.Object {
		return decoded(t, watched(t, dynamic.As[unstructured.Lazy](f.r), &metav1.ListOptions{ResourceVersion: f.version}))
	},
	"initial events": func(f fallbackRead, t *testing.T) []*unstructured.Object { return watched(t, f.r, nil) },
	"initial events and their end": func(f fallbackRead, t *testing.T) []*unstructured.Object {
		return watched(t, f.r, &metav1.ListOptions{
			SendInitialEvents: new(true), ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan, AllowWatchBookmarks: true,
		})
	},
	"follow": func(f fallbackRead, t *testing.T) []*unstructured.Object {
		return f.follow(t, nil, make(chan struct{}))
	},
	"interned follow": func(f fallbackRead, t *testing.T) []*unstructured.Object {
		return f.follow(t, &dynamic.FollowOptions{Intern: true}, make(chan struct{}))
	},
}

// follow closes synced at the end of the initial list.
func (f fallbackRead) follow(t *testing.T, opts *dynamic.FollowOptions, synced chan struct{}) (all []*unstructured.Object) {
	for change, err := range f.r.Follow(t.Context(), opts) {
		if !assert.NoError(t, err) {
			return all
		}
		switch change.Type {
		case dynamic.Synced:
			close(synced)
		case watch.Added:
			all = append(all, change.Object)
		default:
			assert.Equal(t, dynamic.Started, change.Type)
		}
		if len(all) == fallbackObjects {
			return all
		}
	}
	return all
}

func listedBy[T any](t *testing.T, r *dynamic.Handle[T], limit int64) (all []*T) {
	t.Helper()
	for obj, err := range r.List(t.Context(), &metav1.ListOptions{Limit: limit}) {
		require.NoError(t, err)
		all = append(all, obj)
	}
	return all
}

func watched[T any](t *testing.T, r *dynamic.Handle[T], opts *metav1.ListOptions) (all []*T) {
	t.Helper()
	for event, err := range r.Watch(t.Context(), opts) {
		require.NoError(t, err)
		assert.Equal(t, watch.Added, event.Type)
		if all = append(all, event.Object); len(all) == fallbackObjects {
			break
		}
	}
	return all
}

func decoded(t *testing.T, lazy []*unstructured.Lazy) (all []*unstructured.Object) {
	t.Helper()
	for _, one := range lazy {
		obj, err := one.Object()
		require.NoError(t, err)
		all = append(all, obj)
	}
	return all
}
