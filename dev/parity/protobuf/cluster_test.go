package protobuf_test

import (
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	kjson "k8s.io/apimachinery/pkg/util/json"

	"github.com/anykind/anykind/discovery"
	"github.com/anykind/anykind/internal/testing/client"
	"github.com/anykind/anykind/internal/testing/cluster"
	"github.com/anykind/anykind/internal/testing/protobufform"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured"
)

// objects are created before lists are compared. The claims of a StatefulSet have a kind in JSON alone.
var objects = []string{
	`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"a":"1","empty":""},"binaryData":{"b":"AAE="}}`,
	`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a"},"data":{"empty":"","b":"AAE="}}`,
	`{"apiVersion":"v1","kind":"Service","metadata":{"name":"a"},"spec":{"ports":[{"port":80,"targetPort":"http"}],"clusterIP":"None"}}`,
	`{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"a"}}`,
	`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"serviceAccountName":"a","automountServiceAccountToken":false,"containers":[{"name":"a","image":"a",
		"resources":{"requests":{"cpu":"1000m","memory":"1024Mi"}},"livenessProbe":{"httpGet":{"port":80}}}],
		"volumes":[{"name":"a","emptyDir":{"sizeLimit":"0"}},{"name":"b","projected":{"sources":[{"configMap":{"name":"a"}}]}}]}}`,
	`{"apiVersion":"apps/v1","kind":"StatefulSet","metadata":{"name":"a"},"spec":{"serviceName":"a","selector":{"matchLabels":{"a":"b"}},
		"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"a","image":"a"}]}},
		"volumeClaimTemplates":[{"metadata":{"name":"data"},"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}}]}}`,
	`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"a"},"spec":{"replicas":0,"selector":{"matchLabels":{"a":"b"}},
		"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"a","image":"a"}]}}}}`,
	`{"apiVersion":"apps/v1","kind":"ControllerRevision","metadata":{"name":"a"},"revision":1,"data":{"a":[1,null,1.5,"x"]}}`,
	`{"apiVersion":"batch/v1","kind":"CronJob","metadata":{"name":"a"},"spec":{"schedule":"* * * * *","jobTemplate":{"spec":{"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"a","image":"a"}]}}}}}}`,
	`{"apiVersion":"autoscaling/v2","kind":"HorizontalPodAutoscaler","metadata":{"name":"a"},"spec":{"maxReplicas":3,"scaleTargetRef":{"kind":"Deployment","name":"a","apiVersion":"apps/v1"}}}`,
	`{"apiVersion":"networking.k8s.io/v1","kind":"NetworkPolicy","metadata":{"name":"a"},"spec":{"podSelector":{},"ingress":[{}],"egress":[{"ports":[{"port":"http"}]}]}}`,
	`{"apiVersion":"policy/v1","kind":"PodDisruptionBudget","metadata":{"name":"a"},"spec":{"minAvailable":"50%","selector":{}}}`,
	`{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"a"},"spec":{"renewTime":"2024-01-01T00:00:00.000000Z"}}`,
	`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role","metadata":{"name":"a"},"rules":[{"verbs":["get"],"apiGroups":[""],"resources":["pods"]}]}`,
	`{"apiVersion":"v1","kind":"ResourceQuota","metadata":{"name":"a"},"spec":{"hard":{"pods":"10","requests.cpu":"2000m"}}}`,
	`{"apiVersion":"v1","kind":"LimitRange","metadata":{"name":"a"},"spec":{"limits":[{"type":"Container","default":{"cpu":"1"}}]}}`,
}

// getList returns the body of a list in a media type, and whether the server has sent that type.
func getList(t *testing.T, conn *transport.Conn, r *discovery.Resource, mediaType string) (response *http.Response, isType bool) {
	t.Helper()
	path := "/api/v1/"
	if r.GVR.Group != "" {
		path = "/apis/" + r.GVR.GroupVersion().String() + "/"
	}
	header := http.Header{"Accept": {mediaType + ",application/json;q=0.5"}}
	response, err := conn.Do(t.Context(), &transport.Request{Path: path + r.GVR.Resource, Header: header})
	require.NoError(t, err)
	t.Cleanup(func() { _ = response.Body.Close() })
	return response, response.Header.Get("Content-Type") == mediaType
}

// TestDecode_ListsOfTheServer compares the lists of all built-in kinds, which the API server sends as Protobuf and as JSON.
func TestDecode_ListsOfTheServer(t *testing.T) {
	cfg, err := transport.Load(t.Context(), &transport.LoadOptions{Path: cluster.Kubeconfig(t)})
	require.NoError(t, err)
	conn, err := transport.Open(cfg)
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	c := client.Connect(t, "")
	namespace := client.NewNamespace(t, c)
	for _, text := range objects {
		obj, err := unstructured.Decode([]byte(text))
		require.NoError(t, err)
		resource, err := c.ForObject(t.Context(), obj)
		require.NoError(t, err)
		_, err = resource.Namespace(namespace).Create(t.Context(), obj, nil)
		require.NoError(t, err, "%s", obj.GetKind())
	}
	snapshot, err := c.Discovery().Snapshot(t.Context())
	require.NoError(t, err)
	kinds := 0
	items := 0
	for r := range snapshot.Resources() {
		if !r.Supports("list") {
			continue
		}
		response, isProtobuf := getList(t, conn, r, "application/vnd.kubernetes.protobuf")
		if !isProtobuf {
			t.Logf("%s is sent as %s", r.GVR, response.Header.Get("Content-Type"))
			continue
		}
		got, err := protobufform.List(response.Body)
		require.NoError(t, err, "%s", r.GVR)
		response, _ = getList(t, conn, r, "application/json")
		want, err := readItems(response)
		require.NoError(t, err)
		kinds++
		require.Len(t, got, len(want), "%s", r.GVR)
		for i := range want {
			if r.GVR.Resource == "componentstatuses" {
				break // the server computes them for each request, in any order
			}
			version := (&unstructured.Object{Object: got[i].Object}).GetResourceVersion()
			if version != (&unstructured.Object{Object: want[i].(map[string]any)}).GetResourceVersion() {
				continue // changed between the lists
			}
			items++
			assert.Empty(t, difference("", want[i], any(got[i].Object)), "%s", r.GVR)
			var fromJSON map[string]any
			require.NoError(t, kjson.Unmarshal(got[i].JSON, &fromJSON))
			assert.Empty(t, difference("", want[i], fromJSON), "%s as JSON", r.GVR)
		}
	}
	t.Logf("%d kinds with %d objects", kinds, items)
	assert.Greater(t, kinds, 40)
	assert.Greater(t, items, len(objects))
}

func readItems(response *http.Response) (items []any, err error) {
	list := unstructured.NewListDecoder(response.Body)
	for {
		item, err := list.Next()
		if err == io.EOF {
			return items, nil
		}
		if err != nil {
			return nil, err
		}
		items = append(items, item.Object)
	}
}
