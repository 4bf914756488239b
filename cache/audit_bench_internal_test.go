package cache

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/scripted"
	"github.com/anykind/anykind/unstructured"
)

// auditedPod returns a pod of 4.5 kB, and its metadata of 1.2 kB.
func auditedPod(i, version int) (pod, metadata string) {
	managed := strings.Repeat(`"f:status":{"f:conditions":{"k:{\"type\":\"Ready\"}":{".":{},"f:lastProbeTime":{}}}},`, 8)
	meta := fmt.Sprintf(`{"namespace":"team-%d","name":"web-%d","uid":"c1d3a9c6-7d0b-4f10-9a55-%012d","resourceVersion":"%d","creationTimestamp":"2026-01-02T03:04:05Z",`+
		`"labels":{"app":"web-%d","pod-template-hash":"5d4f8c7b9"},"managedFields":[{"manager":"kubelet","operation":"Update","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{%s"f:metadata":{}}}]}`,
		i%100, i, i, version, i, managed)
	container := `{"name":"web","image":"registry.example.com/shop/web:v1.2.3","env":[{"name":"MODE","value":"production"}],"resources":{"limits":{"cpu":"1","memory":"1Gi"}}}`
	spec := `{"nodeName":"node-7","containers":[` + strings.Repeat(container+",", 15) + container + `]}`
	return `{"kind":"Pod","apiVersion":"v1","metadata":` + meta + `,"spec":` + spec + `}`, `{"metadata":` + meta + `}`
}

const auditedPods = 10_000

// auditedCache returns a running cache of 10,000 pods at resourceVersion 10000. Its server sends events after the initial list.
func auditedCache(b *testing.B, events <-chan string) *Cache[unstructured.Object] {
	b.Helper()
	server := scripted.New("/v1 pods pod Pod po")
	server.Handle("WATCH /api/v1/pods", func(w http.ResponseWriter, r *http.Request) {
		for i := range auditedPods {
			pod, _ := auditedPod(i, i+1)
			_, _ = io.WriteString(w, scripted.Event("ADDED", pod))
		}
		_, _ = io.WriteString(w, scripted.InitialEventsEnd("v1", "Pod", fmt.Sprint(auditedPods)))
		scripted.WatchChannel(events)(w, r)
	})
	pages := map[string]string{}
	for start := 0; start < auditedPods; start += 500 {
		items := make([]string, 500)
		for i := range items {
			_, items[i] = auditedPod(start+i, start+i+1)
		}
		token := fmt.Sprint(start)
		next := fmt.Sprint(start + 500)
		if start == 0 {
			token = ""
		}
		if start+500 == auditedPods {
			next = ""
		}
		pages[token] = fmt.Sprintf(`{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"%d","continue":%q},"items":[%s]}`,
			auditedPods, next, strings.Join(items, ","))
	}
	server.Handle("GET /api/v1/pods", func(w http.ResponseWriter, r *http.Request) {
		scripted.JSON(pages[r.URL.Query().Get("continue")])(w, r)
	})
	client := dynamic.New(scripted.Connect(b, server, nil), nil)
	b.Cleanup(client.Close)
	pods, err := client.Resource(b.Context(), "pods")
	if err != nil {
		b.Fatal(err)
	}
	c := New(pods.AllNamespaces(), &Options[unstructured.Object]{Audit: &Audit{}})
	ctx, cancel := context.WithCancel(b.Context())
	go func() { _ = c.Run(ctx) }()
	b.Cleanup(func() { cancel(); <-c.stopped })
	if err := c.WaitForSync(b.Context()); err != nil {
		b.Fatal(err)
	}
	return c
}

// BenchmarkAudit_Pods measures an audit of 10,000 pods, and the change of a pod. Both include the scripted server.
func BenchmarkAudit_Pods(b *testing.B) {
	b.Setenv(detectorVariable, "false")
	b.Run("audit", func(b *testing.B) {
		c := auditedCache(b, nil)
		a := c.newAuditor(nil, c.source)
		for b.Loop() {
			a.isDue.Store(true)
			a.progress(fmt.Sprint(auditedPods))
			var result AuditResult
			if err := a.compare(b.Context(), &result); err != nil || result.Objects != auditedPods || len(result.Differences) > 0 {
				b.Fatal(err, result)
			}
		}
	})
	b.Run("change", func(b *testing.B) {
		events := make(chan string)
		c := auditedCache(b, events)
		version := auditedPods
		for b.Loop() {
			version++
			pod, _ := auditedPod(version%auditedPods, version)
			events <- scripted.Event("MODIFIED", pod)
			if err := c.WaitForResourceVersion(b.Context(), fmt.Sprint(version)); err != nil {
				b.Fatal(err)
			}
		}
	})
}
