package dynamic_test

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/scripted"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured"
)

const (
	acceptsProtobuf = "application/vnd.kubernetes.protobuf,application/json"
	protobufType    = "application/vnd.kubernetes.protobuf"
)

// delimited encodes a length-delimited field.
func delimited[B ~[]byte | ~string](number int, content B) []byte {
	data := binary.AppendUvarint(nil, uint64(number)<<3|2)
	return append(binary.AppendUvarint(data, uint64(len(content))), content...)
}

// encodedConfigMap is the message of a ConfigMap.
func encodedConfigMap(t *testing.T, name, resourceVersion string) []byte {
	t.Helper()
	meta := metav1.ObjectMeta{Name: name, Namespace: "home", ResourceVersion: resourceVersion}
	encoded, err := meta.Marshal()
	require.NoError(t, err)
	return append(delimited(1, encoded), delimited(2, append(delimited(1, "key"), delimited(2, "value")...))...)
}

// newer adds a field that no table has.
func newer(message []byte) []byte { return append(message, delimited(60, "new")...) }

// enveloped adds the envelope of a body.
func enveloped(t *testing.T, kind string, message []byte) []byte {
	t.Helper()
	envelope := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: "v1", Kind: kind}, Raw: message}
	body, err := envelope.Marshal()
	require.NoError(t, err)
	return append([]byte("k8s\x00"), body...)
}

// encodedList is a list in an envelope.
func encodedList(t *testing.T, kind string, meta metav1.ListMeta, items ...[]byte) []byte {
	t.Helper()
	encoded, err := meta.Marshal()
	require.NoError(t, err)
	message := delimited(1, encoded)
	for _, item := range items {
		message = append(message, delimited(2, item)...)
	}
	return enveloped(t, kind, message)
}

// encodedEvent is a frame of a watch.
func encodedEvent(t *testing.T, eventType watch.EventType, kind string, message []byte) []byte {
	t.Helper()
	event := metav1.WatchEvent{Type: string(eventType), Object: runtime.RawExtension{Raw: enveloped(t, kind, message)}}
	encoded, err := event.Marshal()
	require.NoError(t, err)
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(encoded))), encoded...)
}

// protobufOf returns a response in JSON, a list or the events of a watch, as protobuf. Objects have metadata alone.
func protobufOf(t *testing.T, body string) string {
	t.Helper()
	type object struct {
		Kind     string
		Metadata metav1.ObjectMeta
	}
	message := func(obj object) []byte {
		encoded, err := obj.Metadata.Marshal()
		require.NoError(t, err)
		return delimited(1, encoded)
	}
	var encoded []byte
	for decoder := json.NewDecoder(strings.NewReader(body)); decoder.More(); {
		var read struct {
			Type     watch.EventType
			Object   object
			Metadata metav1.ListMeta
			Items    []object
		}
		require.NoError(t, decoder.Decode(&read))
		if read.Type != "" {
			encoded = append(encoded, encodedEvent(t, read.Type, read.Object.Kind, message(read.Object))...)
			continue
		}
		var items [][]byte
		for _, item := range read.Items {
			items = append(items, message(item))
		}
		encoded = append(encoded, encodedList(t, "PodList", read.Metadata, items...)...)
	}
	return string(encoded)
}

// respondProtobuf responds with parts of a body, and then waits for the end of the request if isWatch.
func respondProtobuf(isWatch bool, parts ...[]byte) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", protobufType)
		for _, part := range parts {
			_, _ = w.Write(part)
		}
		if isWatch {
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}
	}
}

const configMapRoute = "/api/v1/namespaces/home/configmaps"

// configMaps returns a handle of a client with protobuf.
func configMaps(t *testing.T, opts *transport.Options) (*dynamic.Resource, *scripted.Server) {
	t.Helper()
	server := scripted.New("/v1 configmaps configmap ConfigMap cm")
	if opts == nil {
		opts = &transport.Options{}
	}
	opts.Namespace = "home"
	opts.Protobuf = true
	client := dynamic.New(scripted.Connect(t, server, opts), nil)
	t.Cleanup(client.Close)
	return resource(t, client, "configmaps"), server
}

// sent returns the requests as "protobuf URI" or "JSON URI", without the path.
func sent(t *testing.T, server *scripted.Server) (all []string) {
	t.Helper()
	for _, request := range server.Requests() {
		form := "JSON"
		switch request.Accept {
		case acceptsProtobuf:
			form = "protobuf"
		default:
			assert.Equal(t, "application/json", request.Accept)
		}
		all = append(all, form+" "+strings.TrimPrefix(request.URI, configMapRoute))
	}
	return all
}

func configMapJSON(name, resourceVersion string) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q,"namespace":"home","resourceVersion":%q},"data":{"key":"value"}}`,
		name, resourceVersion)
}

func TestHandle_GetProtobuf(t *testing.T) {
	r, server := configMaps(t, nil)
	server.Handle("GET "+configMapRoute+"/a", respondProtobuf(false, enveloped(t, "ConfigMap", encodedConfigMap(t, "a", "1"))),
		respondProtobuf(false, enveloped(t, "ConfigMap", newer(encodedConfigMap(t, "a", "2")))), scripted.JSON(configMapJSON("a", "3")))
	for version := range 4 {
		got, err := r.Get(t.Context(), "a", nil)
		require.NoError(t, err)
		want, err := unstructured.Decode([]byte(configMapJSON("a", []string{"1", "3", "3", "3"}[version])))
		require.NoError(t, err)
		assert.Equal(t, want, got)
	}
	assert.Equal(t, []string{"protobuf /a", "protobuf /a", "JSON /a", "JSON /a", "JSON /a"}, sent(t, server), "a newer server stays JSON")
}

// A proxy may ignore the Accept header.
func TestHandle_GetAlwaysProtobuf(t *testing.T) {
	r, server := configMaps(t, nil)
	newerMap := respondProtobuf(false, enveloped(t, "ConfigMap", newer(encodedConfigMap(t, "a", "1"))))
	server.Handle("GET "+configMapRoute+"/a", newerMap, newerMap, scripted.Status(http.StatusNotFound, "NotFound"))
	_, err := r.Get(t.Context(), "a", nil)
	require.ErrorContains(t, err, "field 60 is unknown")
	assert.Equal(t, []string{"protobuf /a", "JSON /a"}, sent(t, server))
}

func TestHandle_GetBrokenProtobuf(t *testing.T) {
	r, server := configMaps(t, nil)
	body := enveloped(t, "ConfigMap", encodedConfigMap(t, "a", "1"))
	server.Handle("GET "+configMapRoute+"/a", respondProtobuf(false, body[:len(body)/2]))
	_, err := r.Get(t.Context(), "a", nil)
	require.ErrorContains(t, err, "/api/v1/namespaces/home/configmaps/a: ")
	require.ErrorContains(t, err, "invalid Protobuf")
	assert.Len(t, server.Requests(), 1, "a broken response does not turn protobuf off")
}

// listVerbs are the calls that list.
func listVerbs(t *testing.T, opts *metav1.ListOptions) map[string]func(*dynamic.Resource) ([]string, error) {
	t.Helper()
	return map[string]func(*dynamic.Resource) ([]string, error){
		"list": func(r *dynamic.Resource) (names []string, err error) {
			for obj, err := range r.List(t.Context(), opts) {
				if err != nil {
					return names, err
				}
				names = append(names, obj.GetName())
			}
			return names, nil
		},
		"list page": func(r *dynamic.Resource) (names []string, err error) {
			page, err := r.ListPage(t.Context(), opts)
			if err != nil {
				return nil, err
			}
			for _, obj := range page.Items {
				names = append(names, obj.GetName())
			}
			return names, nil
		},
	}
}

func TestHandle_ListFallsBackToJSON(t *testing.T) {
	for _, test := range []struct {
		name, query string
		opts        metav1.ListOptions
		meta        metav1.ListMeta
	}{
		{"first page", "limit=3&resourceVersion=7&resourceVersionMatch=Exact", metav1.ListOptions{Limit: 3}, metav1.ListMeta{ResourceVersion: "7", Continue: "next"}},
		{"whole list", "resourceVersion=7&resourceVersionMatch=Exact", metav1.ListOptions{Limit: 3}, metav1.ListMeta{ResourceVersion: "7"}},
		{"from a cache", "resourceVersion=7&resourceVersionMatch=Exact", metav1.ListOptions{Limit: 3, ResourceVersion: "0"}, metav1.ListMeta{ResourceVersion: "7"}},
		{"later page", "continue=token&limit=3", metav1.ListOptions{Limit: 3, Continue: "token"}, metav1.ListMeta{ResourceVersion: "7"}},
		{"no resourceVersion", "limit=3", metav1.ListOptions{Limit: 3}, metav1.ListMeta{}},
	} {
		for verb, list := range listVerbs(t, &test.opts) {
			t.Run(verb+", "+test.name, func(t *testing.T) {
				r, server := configMaps(t, nil)
				inJSON := []string{configMapJSON("a", "1"), configMapJSON("b", "2"), configMapJSON("c", "3")}
				server.Handle("GET "+configMapRoute,
					respondProtobuf(false, encodedList(t, "ConfigMapList", test.meta, encodedConfigMap(t, "a", "1"), newer(encodedConfigMap(t, "b", "2")), encodedConfigMap(t, "c", "3"))),
					scripted.JSON(`{"apiVersion":"v1","kind":"ConfigMapList","metadata":{"resourceVersion":"7"},"items":[`+strings.Join(inJSON, ",")+`]}`))
				names, err := list(r)
				require.NoError(t, err)
				assert.Equal(t, []string{"a", "b", "c"}, names, "each object once")
				requests := sent(t, server)
				require.Len(t, requests, 2)
				assert.Equal(t, "JSON ?"+test.query, requests[1])
			})
		}
	}
}

func TestHandle_ListChangedBetweenForms(t *testing.T) {
	r, server := configMaps(t, nil)
	server.Handle("GET "+configMapRoute,
		respondProtobuf(false, encodedList(t, "ConfigMapList", metav1.ListMeta{}, encodedConfigMap(t, "a", "1"), newer(encodedConfigMap(t, "b", "2")))),
		scripted.JSON(`{"apiVersion":"v1","kind":"ConfigMapList","metadata":{},"items":[]}`))
	for verb, list := range listVerbs(t, nil) {
		if verb == "list" {
			_, err := list(r)
			require.ErrorIs(t, err, io.ErrUnexpectedEOF, "the items that were read are missing")
		}
	}
}

// The first page is requested again as JSON, but its resourceVersion has expired. The second page may be prefetched already.
func TestHandle_ListExpiredBetweenForms(t *testing.T) {
	for name, tc := range map[string]struct {
		policy  dynamic.ExpiryPolicy
		yielded int // objects before the request as JSON
		want    string
		fails   bool
	}{
		"fail":                    {dynamic.ExpiryFail, 2, "a b", true},
		"restart":                 {dynamic.ExpiryRestart, 2, "a b a b c d", false},
		"restart, not prefetched": {dynamic.ExpiryRestart, 1, "a a b c d", false},
		"continue":                {dynamic.ExpiryContinue, 2, "a b", true},
		"continue, none yielded":  {dynamic.ExpiryContinue, 0, "a c d", false},
	} {
		t.Run(name, func(t *testing.T) {
			r, server := configMaps(t, nil)
			objects := [][]byte{encodedConfigMap(t, "a", "1"), encodedConfigMap(t, "b", "1"), encodedConfigMap(t, "c", "1")}
			objects[tc.yielded] = newer(objects[tc.yielded])
			first := inTurn(respondProtobuf(false, encodedList(t, "ConfigMapList", metav1.ListMeta{ResourceVersion: "9", Continue: "2"}, objects...)),
				page("2", "a", "b", "c"))
			pages := map[string]http.HandlerFunc{"": first, "2": page("", "d"), "rest": page("", "a", "c", "d")}
			server.Handle("GET "+configMapRoute, func(w http.ResponseWriter, r *http.Request) {
				handler := pages[r.URL.Query().Get("continue")]
				if r.URL.Query().Has("resourceVersionMatch") {
					handler = gone("rest")
				}
				handler(w, r)
			})
			r = r.WithPageOptions(&dynamic.PageOptions{OnExpired: func(error) dynamic.ExpiryPolicy { return tc.policy }})
			got, err := listVerbs(t, nil)["list"](r)
			assert.Equal(t, tc.fails, err != nil, "%v", err)
			assert.Equal(t, tc.fails, apierrors.IsResourceExpired(err), "%v", err)
			assert.Equal(t, tc.want, strings.Join(got, " "))
		})
	}
}

func TestHandle_ListPageLimitOfProtobuf(t *testing.T) {
	const limit = 20_000
	r, server := configMaps(t, &transport.Options{MemoryLimits: transport.MemoryLimits{Page: limit}})
	item := encodedConfigMap(t, "a", "1")
	server.Handle("GET "+configMapRoute, respondProtobuf(false, encodedList(t, "ConfigMapList", metav1.ListMeta{}, slices.Repeat([][]byte{item}, 40)...)))
	_, err := r.ListPage(t.Context(), nil)
	var exceeded *unstructured.LimitError
	require.ErrorAs(t, err, &exceeded)
	assert.Equal(t, unstructured.LimitError{Limit: limit, IsPage: true}, *exceeded)
}

func TestHandle_WatchResumesAsJSON(t *testing.T) {
	r, server := configMaps(t, nil)
	server.Handle("WATCH "+configMapRoute,
		respondProtobuf(true, encodedEvent(t, watch.Added, "ConfigMap", encodedConfigMap(t, "a", "11")),
			encodedEvent(t, watch.Modified, "ConfigMap", newer(encodedConfigMap(t, "b", "12")))),
		scripted.Watch(scripted.Event("MODIFIED", configMapJSON("b", "12"))))
	var got []string
	for event, err := range r.Watch(t.Context(), &metav1.ListOptions{ResourceVersion: "10"}) {
		require.NoError(t, err)
		if got = append(got, string(event.Type)+" "+event.Object.GetName()); len(got) == 2 {
			break
		}
	}
	assert.Equal(t, []string{"ADDED a", "MODIFIED b"}, got)
	assert.Equal(t, []string{"protobuf ?resourceVersion=10&watch=true", "JSON ?resourceVersion=11&watch=true"}, sent(t, server))
}

func TestHandle_WatchResumesWithOptionsOfCall(t *testing.T) {
	r, server := configMaps(t, nil)
	server.Handle("WATCH "+configMapRoute,
		respondProtobuf(true, encodedEvent(t, watch.Added, "ConfigMap", newer(encodedConfigMap(t, "a", "11")))),
		scripted.Watch(scripted.Event("ADDED", configMapJSON("a", "11"))))
	opts := &metav1.ListOptions{ResourceVersion: "10", LabelSelector: "app=a"}
	stream, err := r.OpenWatch(t.Context(), opts)
	require.NoError(t, err)
	defer stream.Close()
	*opts = metav1.ListOptions{ResourceVersion: "20", LabelSelector: "app=b"} // of the caller's next watch
	_, err = stream.Next()
	require.NoError(t, err)
	const query = " ?labelSelector=app%3Da&resourceVersion=10&watch=true"
	assert.Equal(t, []string{"protobuf" + query, "JSON" + query}, sent(t, server))
}

func TestWatchStream_CloseEndsResumption(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, server := configMaps(t, nil)
		server.Handle("WATCH "+configMapRoute,
			respondProtobuf(true, encodedEvent(t, watch.Added, "ConfigMap", newer(encodedConfigMap(t, "a", "11")))), scripted.Hang)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		stream, err := r.OpenWatch(ctx, &metav1.ListOptions{ResourceVersion: "10"})
		require.NoError(t, err)
		ended := false
		go func() { _, err = stream.Next(); ended = true }()
		synctest.Wait()
		require.Len(t, sent(t, server), 2)
		stream.Close()
		synctest.Wait()
		require.True(t, ended)
		require.ErrorIs(t, err, net.ErrClosed)
	})
}

func TestHandle_WatchOfInitialObjectsIsJSON(t *testing.T) {
	for query, opts := range map[string]*metav1.ListOptions{
		"watch=true":                   nil,
		"resourceVersion=0&watch=true": {ResourceVersion: "0"},
		"resourceVersion=8&resourceVersionMatch=NotOlderThan&sendInitialEvents=true&watch=true": {
			ResourceVersion: "8", ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan, SendInitialEvents: new(true),
		},
	} {
		r, server := configMaps(t, nil)
		server.Handle("WATCH "+configMapRoute, scripted.Watch(scripted.Event("ADDED", configMapJSON("a", "1"))))
		for _, err := range r.Watch(t.Context(), opts) {
			require.NoError(t, err)
			break
		}
		assert.Equal(t, []string{"JSON ?" + query}, sent(t, server), "initial events have no order to resume from")
	}
}

func TestHandle_WatchErrorEventOfProtobuf(t *testing.T) {
	r, server := configMaps(t, nil)
	expired := metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonExpired, Code: http.StatusGone, Message: "too old"}
	encoded, err := expired.Marshal()
	require.NoError(t, err)
	server.Handle("WATCH "+configMapRoute, respondProtobuf(false, encodedEvent(t, watch.Error, "Status", encoded)))
	for _, err = range r.Watch(t.Context(), &metav1.ListOptions{ResourceVersion: "10"}) {
		break
	}
	require.ErrorContains(t, err, "too old")
}

func TestHandle_FollowFallsBackToJSON(t *testing.T) {
	for _, test := range []struct {
		resourceVersion string // of the event before the field: "" within the initial events
		intern          bool
	}{{"", false}, {"", true}, {"12", false}, {"12", true}} {
		r, server := configMaps(t, nil)
		server.Handle("GET "+configMapRoute, scripted.Status(http.StatusInternalServerError, "InternalError"))
		bookmark := metav1.ObjectMeta{ResourceVersion: "12", Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"}}
		encoded, err := bookmark.Marshal()
		require.NoError(t, err)
		events := [][]byte{encodedEvent(t, watch.Added, "ConfigMap", encodedConfigMap(t, "a", "11"))}
		again := scripted.Event("ADDED", configMapJSON("a", "11")) + scripted.Event("ADDED", configMapJSON("b", "13")) +
			scripted.InitialEventsEnd("v1", "ConfigMap", "13")
		want := []string{"STARTED", "ADDED a", "ADDED b", "SYNCED"}
		if test.resourceVersion != "" {
			events = append(events, encodedEvent(t, watch.Bookmark, "ConfigMap", delimited(1, encoded)))
			again = scripted.Event("ADDED", configMapJSON("b", "13"))
			want = []string{"STARTED", "ADDED a", "SYNCED", "ADDED b"}
		}
		events = append(events, encodedEvent(t, watch.Added, "ConfigMap", newer(encodedConfigMap(t, "b", "13"))))
		server.Handle("WATCH "+configMapRoute, respondProtobuf(true, events...), scripted.Watch(again))
		var got []string
		for change, err := range r.Follow(t.Context(), &dynamic.FollowOptions{Intern: test.intern}) {
			require.NoError(t, err)
			text := string(change.Type)
			if change.Object != nil {
				text += " " + change.Object.GetName()
			}
			if got = append(got, text); len(got) == len(want) {
				break
			}
		}
		assert.Equal(t, want, got)
		requests := sent(t, server)
		require.Len(t, requests, 2)
		assert.Regexp(t, "^protobuf ", requests[0])
		assert.Regexp(t, "^JSON ", requests[1])
		assert.Equal(t, test.resourceVersion != "", strings.Contains(requests[1], "resourceVersion=12&"), requests[1])
	}
}

// decoding returns a handle with a Decoder, and the calls of its functions.
func decoding(r *dynamic.Resource) (h *dynamic.Handle[metav1.PartialObjectMetadata], calls *[]string) {
	calls = &[]string{}
	return dynamic.Decode(r, dynamic.Decoder[metav1.PartialObjectMetadata]{
		Lazy: func(obj *unstructured.Lazy) (*metav1.PartialObjectMetadata, error) {
			*calls = append(*calls, "lazy "+obj.GetName())
			return unstructured.As[metav1.PartialObjectMetadata](obj)
		},
		Message: func(message []byte) (*metav1.PartialObjectMetadata, error) {
			obj := &metav1.PartialObjectMetadata{}
			err := obj.Unmarshal(message)
			*calls = append(*calls, "message "+obj.Name)
			return obj, err
		},
	}), calls
}

func TestDecode_EachResponse(t *testing.T) {
	a, b := encodedConfigMap(t, "a", "1"), newer(encodedConfigMap(t, "b", "2"))
	long := append(encodedConfigMap(t, "long", "3"), delimited(2, append(delimited(1, "key"), delimited(2, strings.Repeat("v", 300<<10))...))...)
	bookmark, err := (&metav1.ObjectMeta{ResourceVersion: "12", Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"}}).Marshal()
	require.NoError(t, err)
	page := encodedList(t, "ConfigMapList", metav1.ListMeta{ResourceVersion: "7"}, a, b)
	for name, test := range map[string]struct {
		route    string
		response http.HandlerFunc
		read     func(*dynamic.Handle[metav1.PartialObjectMetadata]) (names []string, err error)
		names    []string
		calls    []string
	}{
		"get": {
			"GET " + configMapRoute + "/a", respondProtobuf(false, enveloped(t, "ConfigMap", a)), getDecoded(t, "a"), []string{"a1"}, []string{"message a"},
		},
		"get, a field of a newer server": {
			"GET " + configMapRoute + "/a", respondProtobuf(false, enveloped(t, "ConfigMap", b)), getDecoded(t, "a"), []string{"b2"}, []string{"message b"},
		},
		"get, long": {
			"GET " + configMapRoute + "/a", respondProtobuf(false, enveloped(t, "ConfigMap", long)), getDecoded(t, "a"), []string{"long3"}, []string{"lazy long"},
		},
		"get, JSON": {
			"GET " + configMapRoute + "/a", scripted.JSON(configMapJSON("a", "1")), getDecoded(t, "a"), []string{"a1"}, []string{"lazy a"},
		},
		"list": {"GET " + configMapRoute, respondProtobuf(false, page), func(h *dynamic.Handle[metav1.PartialObjectMetadata]) (names []string, err error) {
			for obj, err := range h.List(t.Context(), nil) {
				if err != nil {
					return nil, err
				}
				names = append(names, obj.Name+obj.ResourceVersion)
			}
			return names, nil
		}, []string{"a1", "b2"}, []string{"message a", "message b"}},
		"page": {
			"GET " + configMapRoute, respondProtobuf(false, encodedList(t, "ConfigMapList", metav1.ListMeta{}, a)),
			func(h *dynamic.Handle[metav1.PartialObjectMetadata]) (names []string, err error) {
				page, err := h.ListPage(t.Context(), nil)
				if err != nil {
					return nil, err
				}
				return []string{page.Items[0].Name + page.Items[0].ResourceVersion}, nil
			}, []string{"a1"}, []string{"lazy a"},
		},
		"follow": {
			"WATCH " + configMapRoute, respondProtobuf(true, encodedEvent(t, watch.Added, "ConfigMap", a), encodedEvent(t, watch.Added, "ConfigMap", b),
				encodedEvent(t, watch.Bookmark, "ConfigMap", delimited(1, bookmark)), encodedEvent(t, watch.Deleted, "ConfigMap", a)),
			func(h *dynamic.Handle[metav1.PartialObjectMetadata]) (names []string, err error) {
				for change, err := range h.Follow(t.Context(), nil) {
					if err != nil {
						return nil, err
					}
					if change.Object != nil {
						names = append(names, string(change.Type)+" "+change.Object.Name+change.Object.ResourceVersion)
					}
					if change.Type == watch.Deleted {
						break
					}
				}
				return names, nil
			}, []string{"ADDED a1", "ADDED b2", "DELETED a1"}, []string{"message a", "message b", "message ", "message a"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			r, server := configMaps(t, nil)
			server.Handle(test.route, test.response)
			h, calls := decoding(r)
			names, err := test.read(h)
			require.NoError(t, err)
			assert.Equal(t, test.names, names)
			assert.Equal(t, test.calls, *calls)
			assert.Len(t, sent(t, server), 1)
		})
	}
}

func getDecoded(t *testing.T, name string) func(*dynamic.Handle[metav1.PartialObjectMetadata]) ([]string, error) {
	t.Helper()
	return func(h *dynamic.Handle[metav1.PartialObjectMetadata]) ([]string, error) {
		obj, err := h.Get(t.Context(), name, nil)
		if err != nil {
			return nil, err
		}
		return []string{obj.Name + obj.ResourceVersion}, nil
	}
}

func TestDecode_InvalidMessage(t *testing.T) {
	r, server := configMaps(t, nil)
	server.Handle("GET "+configMapRoute+"/a", respondProtobuf(false, enveloped(t, "ConfigMap", []byte{0x0a, 0x7f})))
	h, _ := decoding(r)
	_, err := h.Get(t.Context(), "a", nil)
	require.ErrorContains(t, err, "/api/v1/namespaces/home/configmaps/a: unexpected EOF")
	assert.Len(t, server.Requests(), 1)
}
