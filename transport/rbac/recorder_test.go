package rbac_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/transport/rbac"
	"github.com/anykind/anykind/unstructured"
)

// send sends requests, "METHOD PATH" or "METHOD PATH STATUS", through a connection that recorder records.
func send(t *testing.T, recorder *rbac.Recorder, requests ...string) {
	t.Helper()
	status := http.StatusOK
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
	defer server.Close()
	conn, err := transport.Open(&transport.Config{Server: server.URL + "/prefix", Options: transport.Options{OnAttempt: recorder.OnAttempt}})
	require.NoError(t, err)
	defer conn.Close()
	for _, request := range requests {
		fields := append(strings.Fields(request), "200")
		status, err = strconv.Atoi(fields[2])
		require.NoError(t, err)
		response, err := conn.Do(t.Context(), &transport.Request{Method: fields[0], Path: fields[1]})
		if status < 400 {
			require.NoError(t, err)
			require.NoError(t, response.Body.Close())
		} else {
			require.Error(t, err)
		}
	}
}

// rules returns a line for each rule of each role: namespace: group/resources[names] verbs.
func rules(roles []*unstructured.Object) (lines []string) {
	for _, role := range roles {
		all, _ := role.Object["rules"].([]any)
		for _, one := range all {
			fields, _ := one.(map[string]any)
			line := role.GetNamespace() + ": "
			if urls, ok := fields["nonResourceURLs"]; ok {
				line += fmt.Sprint(urls)
			} else {
				line += fmt.Sprintf("%v%v", fields["apiGroups"], fields["resources"])
			}
			if names, ok := fields["resourceNames"]; ok {
				line += fmt.Sprint(" names ", names)
			}
			lines = append(lines, fmt.Sprint(line, " ", fields["verbs"]))
		}
	}
	return lines
}

const (
	core = "/api/v1/namespaces/"
	apps = "/apis/apps/v1/namespaces/"
)

func TestRecorder_RolesByRequest(t *testing.T) {
	for name, tc := range map[string]struct {
		opts     *rbac.RecorderOptions
		requests []string
		want     []string
	}{
		"none":          {},
		"discovery":     {nil, []string{"GET /api", "GET /apis", "GET /apis/apps/v1", "GET /version", "GET /openapi/v3/api/v1", "GET /readyz"}, nil},
		"of every user": {nil, []string{"POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews", "POST /apis/authentication.k8s.io/v1/selfsubjectreviews"}, nil},
		"other reviews": {nil, []string{"POST /apis/authorization.k8s.io/v1/subjectaccessreviews"}, []string{": [authorization.k8s.io][subjectaccessreviews] [create]"}},
		"paths": {
			nil, []string{"GET /metrics", "GET /livez/etcd", "HEAD /metrics", "GET /logs/a"},
			[]string{": [/livez/etcd /logs/a] [get]", ": [/metrics] [get head]"},
		},
		"verbs and resources that share names": {
			nil, []string{
				"GET " + apps + "shop/deployments/web", "PUT " + apps + "shop/deployments/web", "GET " + apps + "shop/statefulsets/web",
				"PUT " + apps + "shop/statefulsets/web", "GET " + core + "shop/secrets/web", "DELETE " + apps + "shop/daemonsets/web",
			},
			[]string{
				"shop: [][secrets] names [web] [get]", "shop: [apps][deployments statefulsets] names [web] [get update]",
				"shop: [apps][daemonsets] names [web] [delete]",
			},
		},
		"a name and all names": {
			nil, []string{"GET " + core + "shop/pods?fieldSelector=metadata.name%3Dweb", "GET " + core + "shop/pods", "GET " + core + "shop/pods?watch=1&fieldSelector=metadata.name%3Dweb"},
			[]string{"shop: [][pods] names [web] [watch]", "shop: [][pods] [list]"},
		},
		"a namespace and all namespaces": {
			nil, []string{"GET " + apps + "a/deployments", "GET /apis/apps/v1/deployments", "GET " + apps + "b/deployments", "GET " + apps + "b/deployments/x"},
			[]string{": [apps][deployments] [list]", "b: [apps][deployments] names [x] [get]"},
		},
		"namespaces are cluster-scoped": {
			nil, []string{"GET /api/v1/namespaces/shop", "PUT /api/v1/namespaces/shop/finalize", "DELETE /api/v1/namespaces/other"},
			[]string{": [][namespaces/finalize] names [shop] [update]", ": [][namespaces] names [other] [delete]", ": [][namespaces] names [shop] [get]"},
		},
		"writes that create": {
			nil, []string{"PATCH " + core + "shop/configmaps/a 201", "PATCH " + core + "shop/configmaps/b", "PUT /apis/coordination.k8s.io/v1/namespaces/shop/leases/c 201"},
			[]string{"shop: [][configmaps] names [a b] [patch]", "shop: [][configmaps] names [a] [create]", "shop: [coordination.k8s.io][leases] names [c] [create update]"},
		},
		"streams": {
			nil, []string{"GET " + core + "shop/pods/web/exec?command=ls", "POST " + core + "shop/pods/web/attach", "GET " + core + "shop/pods/web/log", "GET " + core + "shop/pods/web/proxy/exec"},
			[]string{"shop: [][pods/attach] names [web] [create]", "shop: [][pods/exec] names [web] [create get]", "shop: [][pods/log pods/proxy] names [web] [get]"},
		},
		"methods without a verb": {
			nil, []string{"OPTIONS " + core + "shop/services/web/proxy/", "GET " + core + "shop/services/web/proxy/", "GET " + core + "shop/services/db/proxy/"},
			[]string{"shop: [][services/proxy] names [db] [get]", "shop: [][services/proxy] names [web] [*]"},
		},
		"resources with dots": {
			nil, []string{
				"GET /apis/custom.metrics.k8s.io/v1beta2/namespaces/shop/ingresses.networking.k8s.io/web/requests",
				"GET /apis/external.metrics.k8s.io/v1beta1/namespaces/shop/queue.length",
			},
			[]string{"shop: [custom.metrics.k8s.io][ingresses.networking.k8s.io/requests] names [web] [get]", "shop: [external.metrics.k8s.io][queue.length] [list]"},
		},
		"failed requests": {nil, []string{"GET " + core + "shop/pods/web 404", "DELETE " + core + "shop/pods 403"}, []string{"shop: [][pods] names [web] [get]", "shop: [][pods] [deletecollection]"}},
		"too many names": {
			&rbac.RecorderOptions{MaxNames: 2}, []string{"GET " + core + "shop/pods/a", "GET " + core + "shop/pods/b", "GET " + core + "shop/pods/c", "PUT " + core + "shop/pods/a", "PUT " + core + "shop/pods/b"},
			[]string{"shop: [][pods] names [a b] [update]", "shop: [][pods] [get]"},
		},
		"no names":                    {&rbac.RecorderOptions{MaxNames: -1}, []string{"GET " + core + "shop/pods/a"}, []string{"shop: [][pods] [get]"}},
		"a namespace again":           {&rbac.RecorderOptions{MaxNamespaces: 1}, []string{"GET " + core + "a/pods/x", "GET " + core + "a/pods/y"}, []string{"a: [][pods] names [x y] [get]"}},
		"no namespaces":               {&rbac.RecorderOptions{MaxNamespaces: -1}, []string{"GET " + core + "a/pods/x"}, []string{": [][pods] names [x] [get]"}},
		"too many namespaces":         {&rbac.RecorderOptions{MaxNamespaces: 1}, []string{"GET " + core + "a/pods/x", "GET " + core + "b/pods/y", "GET " + core + "c/pods/z", "PUT " + core + "a/pods/x"}, []string{": [][pods] names [x y z] [get]", "a: [][pods] names [x] [update]"}},
		"all names in one of many":    {&rbac.RecorderOptions{MaxNamespaces: 1}, []string{"GET " + core + "a/pods", "GET " + core + "b/pods"}, []string{": [][pods] [list]"}},
		"names that look like others": {nil, []string{"GET " + core + "a/pods/x%20y", "PUT " + core + "a/pods/x", "PUT " + core + "a/pods/y"}, []string{"a: [][pods] names [x y] [get]", "a: [][pods] names [x y] [update]"}},
	} {
		t.Run(name, func(t *testing.T) {
			recorder := rbac.NewRecorder(tc.opts)
			send(t, recorder, tc.requests...)
			assert.ElementsMatch(t, tc.want, rules(recorder.Roles("r")))
			first := recorder.Roles("r")
			second := recorder.Roles("r")
			assert.Equal(t, first, second, "the order is the same each time")
		})
	}
}

func TestRecorder_RolesAreManifests(t *testing.T) {
	recorder := rbac.NewRecorder(nil)
	send(t, recorder, "GET /api/v1/nodes", "GET "+core+"shop/pods/web", "GET "+core+"shop/pods/web/log", "GET "+core+"home/pods/web")
	text, err := unstructured.EncodeYAML(recorder.Roles("reader")...)
	require.NoError(t, err)
	assert.Equal(t, `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: reader
rules:
- apiGroups:
  - ""
  resources:
  - nodes
  verbs:
  - list
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: reader
  namespace: home
rules:
- apiGroups:
  - ""
  resourceNames:
  - web
  resources:
  - pods
  verbs:
  - get
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: reader
  namespace: shop
rules:
- apiGroups:
  - ""
  resourceNames:
  - web
  resources:
  - pods
  - pods/log
  verbs:
  - get
`, string(text))
}

func TestRecorder_ConcurrentRequests(t *testing.T) {
	recorder := rbac.NewRecorder(&rbac.RecorderOptions{MaxNames: 3, MaxNamespaces: 4})
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 20 {
				attempt := transport.Attempt{Verb: "get", Resource: "pods", Namespace: fmt.Sprint("n", j%5), Name: fmt.Sprint("p", i)}
				recorder.OnAttempt(t.Context(), attempt)
				recorder.Roles("r")
			}
		})
	}
	wg.Wait()
	assert.Equal(t, []string{": [][pods] [get]"}, rules(recorder.Roles("r")))
}
