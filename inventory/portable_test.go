package inventory_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/inventory"
	"github.com/anykind/anykind/unstructured"
)

func decode(t *testing.T, text string) *unstructured.Object {
	t.Helper()
	obj, err := unstructured.Decode([]byte(text))
	require.NoError(t, err)
	return obj
}

func TestPortable_RemovesWhatServersSet(t *testing.T) {
	for name, test := range map[string]struct{ object, want string }{
		"metadata": {
			`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","uid":"1","resourceVersion":"2","generation":3,
				"creationTimestamp":"2026-01-01T00:00:00Z","managedFields":[],"ownerReferences":[{"uid":"9"}],
				"annotations":{"deployment.kubernetes.io/revision":"1"}},"data":{"a":"b"},"status":{}}`,
			`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","ownerReferences":[{"uid":"9"}]},"data":{"a":"b"}}`,
		},
		"service": {
			`{"apiVersion":"v1","kind":"Service","metadata":{"name":"a"},"spec":{"clusterIP":"10.0.0.1","clusterIPs":["10.0.0.1"],
				"ipFamilies":["IPv4"],"ipFamilyPolicy":"SingleStack","internalTrafficPolicy":"Cluster","sessionAffinity":"None",
				"healthCheckNodePort":30001,"ports":[{"port":80,"nodePort":30000}]}}`,
			`{"apiVersion":"v1","kind":"Service","metadata":{"name":"a"},"spec":{"ports":[{"port":80}]}}`,
		},
		"headless service with choices": {
			`{"apiVersion":"v1","kind":"Service","metadata":{"name":"a"},"spec":{"clusterIP":"None","clusterIPs":["None"],
				"ipFamilies":["IPv6","IPv4"],"ipFamilyPolicy":"RequireDualStack","internalTrafficPolicy":"Local","sessionAffinity":"ClientIP"}}`,
			`{"apiVersion":"v1","kind":"Service","metadata":{"name":"a"},"spec":{"clusterIP":"None","clusterIPs":["None"],
				"ipFamilies":["IPv6","IPv4"],"ipFamilyPolicy":"RequireDualStack","internalTrafficPolicy":"Local","sessionAffinity":"ClientIP"}}`,
		},
		"claim": {
			`{"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"name":"a","annotations":{"pv.kubernetes.io/bind-completed":"yes","own":"1"}},
				"spec":{"volumeName":"pv","storageClassName":"fast"}}`,
			`{"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"name":"a","annotations":{"own":"1"}},"spec":{"storageClassName":"fast"}}`,
		},
		"volume": {
			`{"apiVersion":"v1","kind":"PersistentVolume","metadata":{"name":"a"},"spec":{"claimRef":{"name":"a","uid":"1","resourceVersion":"2"}}}`,
			`{"apiVersion":"v1","kind":"PersistentVolume","metadata":{"name":"a"},"spec":{"claimRef":{"name":"a"}}}`,
		},
		"job": {
			`{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"a","labels":{"controller-uid":"1"}},
				"spec":{"selector":{},"template":{"metadata":{"labels":{"batch.kubernetes.io/controller-uid":"1","own":"1"}}}}}`,
			`{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"a"},"spec":{"template":{"metadata":{"labels":{"own":"1"}}}}}`,
		},
		"job with a selector": {
			`{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"a"},"spec":{"manualSelector":true,"selector":{"matchLabels":{"a":"b"}}}}`,
			`{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"a"},"spec":{"manualSelector":true,"selector":{"matchLabels":{"a":"b"}}}}`,
		},
		"pod": {
			`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"nodeName":"n","priority":0,"enableServiceLinks":false,
				"ephemeralContainers":[{"name":"debugger"}],"overhead":{"cpu":"250m"},"runtimeClassName":"kata",
				"volumes":[{"name":"kube-api-access-x"}],"containers":[{"name":"c","volumeMounts":[{"name":"kube-api-access-x"},{"name":"own"}]}],
				"tolerations":[{"key":"node.kubernetes.io/not-ready","tolerationSeconds":300},{"key":"node.kubernetes.io/unreachable","tolerationSeconds":5}]}}`,
			`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"enableServiceLinks":false,"runtimeClassName":"kata",
				"containers":[{"name":"c","volumeMounts":[{"name":"own"}]}],
				"tolerations":[{"key":"node.kubernetes.io/unreachable","tolerationSeconds":5}]}}`,
		},
		"unexpected types": {
			`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"containers":{"name":"c"},"volumes":["a"],"tolerations":1}}`,
			`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"containers":{"name":"c"},"volumes":["a"],"tolerations":1}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			obj := decode(t, test.object)
			before := obj.DeepCopy()
			got, err := json.Marshal(inventory.Portable(obj).Object)
			require.NoError(t, err)
			assert.JSONEq(t, test.want, string(got))
			assert.Equal(t, before, obj, "the argument stays as it is")
		})
	}
}

func TestMadeByController_Kinds(t *testing.T) {
	for object, want := range map[string]bool{
		`"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","ownerReferences":[{"controller":true}]}`:                              true,
		`"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","ownerReferences":[{"controller":false},{}]}`:                          false,
		`"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"kube-root-ca.crt"}`:                                                 true,
		`"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}`:                                                                false,
		`"apiVersion":"example.com/v1","kind":"ConfigMap","metadata":{"name":"kube-root-ca.crt"}`:                                     false,
		`"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"default"}`:                                                     true,
		`"apiVersion":"v1","kind":"Secret","metadata":{"name":"a"},"type":"kubernetes.io/service-account-token"`:                      true,
		`"apiVersion":"v1","kind":"Endpoints","metadata":{"name":"a","labels":{"endpoints.kubernetes.io/managed-by":"a-controller"}}`: true,
		`"apiVersion":"v1","kind":"Endpoints","metadata":{"name":"a"}`:                                                                false,
		`"apiVersion":"events.k8s.io/v1","kind":"Event","metadata":{"name":"a"}`:                                                      true,
	} {
		assert.Equal(t, want, inventory.MadeByController(decode(t, "{"+object+"}")), object)
	}
}

func ExamplePortable() {
	obj, err := unstructured.Decode([]byte(`{"apiVersion":"v1","kind":"ConfigMap","data":{"color":"blue"},
		"metadata":{"name":"one","uid":"7f3e","resourceVersion":"12","managedFields":[]}}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(inventory.Portable(obj).Object["metadata"])
	// Output: map[name:one]
}
