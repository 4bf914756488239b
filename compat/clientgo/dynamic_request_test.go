package clientgo_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	unstructuredv1 "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/anykind/anykind/compat/clientgo"
	"github.com/anykind/anykind/transport"
)

// dynamicClients returns client-go's client of a server, and ours.
func dynamicClients(t *testing.T, server *httptest.Server) map[string]dynamic.Interface {
	t.Helper()
	oracle, err := dynamic.NewForConfigAndClient(&rest.Config{Host: server.URL, UserAgent: "test", QPS: -1}, server.Client())
	require.NoError(t, err)
	conn, err := transport.New(server.URL, server.Client(), &transport.Options{UserAgent: "test"})
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	return map[string]dynamic.Interface{"client-go": oracle, "anykind": clientgo.NewDynamic(conn)}
}

func flip(fields ...string) *unstructuredv1.Unstructured {
	metadata := map[string]any{}
	for i := 0; i+1 < len(fields); i += 2 {
		metadata[fields[i]] = fields[i+1]
	}
	return &unstructuredv1.Unstructured{Object: map[string]any{"apiVersion": "flops/v1", "kind": "Flip", "metadata": metadata, "text": "<&>ü"}}
}

// calls are calls with their options.
func calls(t *testing.T) map[string]func(dynamic.ResourceInterface) error {
	ctx := t.Context()
	seconds := int64(3)
	uid := types.UID("u")
	deletion := metav1.DeleteOptions{GracePeriodSeconds: &seconds, Preconditions: &metav1.Preconditions{UID: &uid}, DryRun: []string{"All"}}
	list := metav1.ListOptions{LabelSelector: "a=b,c", FieldSelector: "metadata.name=x", Limit: 5, Continue: "c?&", TimeoutSeconds: &seconds,
		ResourceVersion: "7", ResourceVersionMatch: metav1.ResourceVersionMatchExact, AllowWatchBookmarks: true}
	return map[string]func(dynamic.ResourceInterface) error{
		"create": func(r dynamic.ResourceInterface) error {
			_, err := r.Create(ctx, flip("name", "mips"), metav1.CreateOptions{FieldValidation: "Warn", FieldManager: "me", DryRun: []string{"All"}})
			return err
		},
		"create without content": func(r dynamic.ResourceInterface) error {
			_, err := r.Create(ctx, &unstructuredv1.Unstructured{}, metav1.CreateOptions{})
			return err
		},
		"create generated": func(r dynamic.ResourceInterface) error {
			_, err := r.Create(ctx, flip("generateName", "m-"), metav1.CreateOptions{})
			return err
		},
		"create subresource": func(r dynamic.ResourceInterface) error {
			_, err := r.Create(ctx, flip("name", "mips"), metav1.CreateOptions{}, "fin")
			return err
		},
		"create subresource unnamed": func(r dynamic.ResourceInterface) error {
			_, err := r.Create(ctx, flip(), metav1.CreateOptions{}, "fin")
			return err
		},
		"update": func(r dynamic.ResourceInterface) error {
			_, err := r.Update(ctx, flip("name", "mips"), metav1.UpdateOptions{FieldManager: "me"})
			return err
		},
		"update unnamed": func(r dynamic.ResourceInterface) error {
			_, err := r.Update(ctx, flip(), metav1.UpdateOptions{})
			return err
		},
		"update status": func(r dynamic.ResourceInterface) error {
			_, err := r.UpdateStatus(ctx, flip("name", "mips"), metav1.UpdateOptions{})
			return err
		},
		"update subresources": func(r dynamic.ResourceInterface) error {
			_, err := r.Update(ctx, flip("name", "mips"), metav1.UpdateOptions{}, "a", "b")
			return err
		},
		"delete":               func(r dynamic.ResourceInterface) error { return r.Delete(ctx, "mips", deletion) },
		"delete with defaults": func(r dynamic.ResourceInterface) error { return r.Delete(ctx, "mips", metav1.DeleteOptions{}, "fin") },
		"delete unnamed":       func(r dynamic.ResourceInterface) error { return r.Delete(ctx, "", metav1.DeleteOptions{}) },
		"delete bad name":      func(r dynamic.ResourceInterface) error { return r.Delete(ctx, "a/b", metav1.DeleteOptions{}) },
		"delete collection":    func(r dynamic.ResourceInterface) error { return r.DeleteCollection(ctx, deletion, list) },
		"get": func(r dynamic.ResourceInterface) error {
			_, err := r.Get(ctx, "mips", metav1.GetOptions{ResourceVersion: "9"})
			return err
		},
		"get odd name": func(r dynamic.ResourceInterface) error {
			_, err := r.Get(ctx, "system:a b", metav1.GetOptions{}, "fin")
			return err
		},
		"get behind a proxy": func(r dynamic.ResourceInterface) error {
			_, err := r.Get(ctx, "mips", metav1.GetOptions{}, "proxy", "a b/c/")
			return err
		},
		"get unnamed":        func(r dynamic.ResourceInterface) error { _, err := r.Get(ctx, "", metav1.GetOptions{}); return err },
		"list":               func(r dynamic.ResourceInterface) error { _, err := r.List(ctx, list); return err },
		"list with defaults": func(r dynamic.ResourceInterface) error { _, err := r.List(ctx, metav1.ListOptions{}); return err },
		"watch": func(r dynamic.ResourceInterface) error {
			w, err := r.Watch(ctx, list)
			if err == nil {
				w.Stop()
			}
			return err
		},
		"json patch": func(r dynamic.ResourceInterface) error {
			_, err := r.Patch(ctx, "mips", types.JSONPatchType, []byte(`[]`), metav1.PatchOptions{FieldManager: "me"})
			return err
		},
		"merge patch": func(r dynamic.ResourceInterface) error {
			_, err := r.Patch(ctx, "mips", types.MergePatchType, []byte(`{}`), metav1.PatchOptions{}, "status")
			return err
		},
		"apply": func(r dynamic.ResourceInterface) error {
			_, err := r.Apply(ctx, "mips", flip("name", "mips"), metav1.ApplyOptions{FieldManager: "me", Force: true, DryRun: []string{"All"}})
			return err
		},
		"apply status": func(r dynamic.ResourceInterface) error {
			_, err := r.ApplyStatus(ctx, "mips", flip("name", "mips"), metav1.ApplyOptions{FieldManager: "me"})
			return err
		},
	}
}

// TestNewDynamic_RequestsOfClientGo compares the requests of each call with those of client-go's own client.
func TestNewDynamic_RequestsOfClientGo(t *testing.T) {
	var recorded []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		header := r.Header.Clone()
		for _, name := range []string{"Content-Length", "User-Agent"} {
			header.Del(name)
		}
		var content any // client-go escapes characters of HTML
		if len(body) > 0 {
			assert.NoError(t, json.Unmarshal(body, &content))
		}
		recorded = append(recorded, fmt.Sprintln(r.Method, r.RequestURI, header, content, bytes.HasSuffix(body, []byte("\n"))))
		w.Header().Set("Content-Type", "application/json")
		if strings.HasSuffix(r.URL.Path, "flips") && r.Method == http.MethodGet {
			_, _ = io.WriteString(w, `{"apiVersion":"flops/v1","kind":"FlipList","metadata":{"resourceVersion":"1"},"items":[]}`)
			return
		}
		_, _ = io.WriteString(w, `{"apiVersion":"flops/v1","kind":"Flip","metadata":{"name":"mips"}}`)
	}))
	defer server.Close()
	clients := dynamicClients(t, server)
	for name, call := range calls(t) {
		for _, gvr := range []schema.GroupVersionResource{
			{Group: "flops", Version: "v1", Resource: "flips"}, {Version: "v1", Resource: "flips"}, {Group: "flops", Version: "v1", Resource: "flips/"},
		} {
			for _, namespace := range []string{"", "shop", "a/b"} {
				t.Run(fmt.Sprintf("%s/%s/%s", name, gvr, namespace), func(t *testing.T) {
					results := map[string][]string{}
					for _, client := range []string{"client-go", "anykind"} {
						recorded = nil
						err := call(clients[client].Resource(gvr).Namespace(namespace))
						results[client] = append(recorded, fmt.Sprint(err))
					}
					assert.Equal(t, results["client-go"], results["anykind"])
				})
			}
		}
	}
}

// TestNewDynamic_ListMetadata compares lists with those of client-go's own client.
func TestNewDynamic_ListMetadata(t *testing.T) {
	for name, metadata := range map[string]string{
		"none":     ``,
		"complete": `"metadata":{"resourceVersion":"7"},`,
		"page":     `"metadata":{"resourceVersion":"7","continue":"more","remainingItemCount":3},`,
		"shard":    `"metadata":{"resourceVersion":"7","shardInfo":{"selector":"a"}},`,
	} {
		t.Run(name, func(t *testing.T) {
			if _, hasShards := reflect.TypeFor[metav1.ListMeta]().FieldByName("ShardInfo"); name == "shard" && !hasShards {
				t.Skip("ListMeta has no ShardInfo before apimachinery 0.36")
			}
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, `{"apiVersion":"flops/v1","kind":"FlipList",`+metadata+`"items":[{"metadata":{"name":"mips"}}]}`)
			}))
			defer server.Close()
			lists := map[string]*unstructuredv1.UnstructuredList{}
			for client, own := range dynamicClients(t, server) {
				list, err := own.Resource(schema.GroupVersionResource{Version: "v1", Resource: "flips"}).List(t.Context(), metav1.ListOptions{})
				require.NoError(t, err)
				lists[client] = list
			}
			assert.Equal(t, lists["client-go"], lists["anykind"])
		})
	}
}

func TestNewDynamic_ApplyRejectsManagedFields(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	for name, client := range dynamicClients(t, server) {
		obj := flip("name", "mips")
		obj.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "me"}})
		_, err := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "flips"}).Apply(t.Context(), "mips", obj, metav1.ApplyOptions{})
		require.ErrorContains(t, err, "managed", name)
	}
}

// TestNewDynamic_WatchEvents compares the events of streams with those of client-go's own client.
func TestNewDynamic_WatchEvents(t *testing.T) {
	object := `{"apiVersion":"v1","kind":"Flip","metadata":{"name":"a","resourceVersion":"5"}}`
	for name, stream := range map[string]string{
		"events": `{"type":"ADDED","object":` + object + `}
{"type":"MODIFIED","object":` + object + `}{"type":"DELETED","object":` + object + `}`,
		"bookmark":     `{"type":"BOOKMARK","object":{"apiVersion":"v1","kind":"Flip","metadata":{"resourceVersion":"9","annotations":{"k8s.io/initial-events-end":"true"}}}}`,
		"error":        `{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"too old","reason":"Expired","code":410}}` + "\n" + `{"type":"ADDED","object":` + object + `}`,
		"not JSON":     `{"type":"ADDED","object":` + object + `}` + "\n" + `{"type":<`,
		"unknown type": `{"type":"NEW","object":` + object + `}`,
		"cut off":      `{"type":"ADDED","object":` + object + `}` + "\n" + `{"type":"MODIFIED","obj`,
		"empty":        ``,
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, stream)
			}))
			defer server.Close()
			events := map[string][]watch.Event{}
			for client, c := range dynamicClients(t, server) {
				w, err := c.Resource(schema.GroupVersionResource{Version: "v1", Resource: "flips"}).Watch(t.Context(), metav1.ListOptions{})
				require.NoError(t, err)
				for event := range w.ResultChan() {
					if status, ok := event.Object.(*metav1.Status); ok && status.Reason == metav1.StatusReasonInternalError {
						status.Message = strings.SplitAfter(status.Message, "the watch stream")[0] // the rest is the decoder's own
						for i := range status.Details.Causes {
							status.Details.Causes[i].Message = ""
						}
					}
					events[client] = append(events[client], event)
				}
				w.Stop()
				w.Stop()
			}
			assert.Equal(t, events["client-go"], events["anykind"])
		})
	}
}

func TestNewDynamic_WatchStops(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}))
	defer server.Close()
	for _, c := range dynamicClients(t, server) {
		w, err := c.Resource(schema.GroupVersionResource{Version: "v1", Resource: "flips"}).Watch(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		w.Stop()
		for range w.ResultChan() { // which must be closed
		}
		w.Stop()
	}
}

// TestNewDynamic_Errors compares the errors of rejections with those of client-go's own client.
func TestNewDynamic_Errors(t *testing.T) {
	for name, c := range map[string]struct {
		code              int
		contentType, body string
		text              bool
	}{
		"status":    {http.StatusConflict, "application/json", `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"no","reason":"Conflict","code":409,"details":{"name":"a"}}`, true},
		"forbidden": {http.StatusForbidden, "text/plain", "no", false},
		"not found": {http.StatusNotFound, "text/plain", "404 page not found\n", false},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", c.contentType)
				w.WriteHeader(c.code)
				_, _ = io.WriteString(w, c.body)
			}))
			defer server.Close()
			errs := map[string]error{}
			for client, own := range dynamicClients(t, server) {
				_, errs[client] = own.Resource(schema.GroupVersionResource{Version: "v1", Resource: "flips"}).Get(t.Context(), "a", metav1.GetOptions{})
				var status *apierrors.StatusError
				require.ErrorAs(t, errs[client], &status)
			}
			assert.Equal(t, apierrors.ReasonForError(errs["client-go"]), apierrors.ReasonForError(errs["anykind"]))
			if c.text {
				assert.Equal(t, errs["client-go"], errs["anykind"])
			}
		})
	}
}
