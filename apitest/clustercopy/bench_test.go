package clustercopy_test

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/anykind/anykind/apitest"
	"github.com/anykind/anykind/apitest/clustercopy"
	"github.com/anykind/anykind/unstructured"
)

// pods returns a copy of n running pods of about 2.8 KB each, with managedFields of two managers.
func pods(b *testing.B, n int) *clustercopy.Copy {
	b.Helper()
	var owned, status strings.Builder
	for i := range 10 {
		fmt.Fprintf(&owned, `"f:containers%d":{"k:{\"name\":\"web\"}":{".":{},"f:image":{},"f:imagePullPolicy":{},"f:name":{},"f:ports":{}}},`, i)
		fmt.Fprintf(&status, `"f:conditions%d":{"k:{\"type\":\"Ready\"}":{".":{},"f:lastProbeTime":{},"f:status":{},"f:type":{}}},`, i)
	}
	c := &clustercopy.Copy{}
	for i := range n {
		pod, err := unstructured.DecodeLazy(fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web-%d","namespace":"shop-%d","uid":"%08x-0000-4000-8000-%012x","resourceVersion":"%d","creationTimestamp":"2026-01-02T03:04:05Z","labels":{"app":"web-%d"},`+
			`"managedFields":[{"manager":"kube-controller-manager","operation":"Update","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{%s"f:dnsPolicy":{}}}},`+
			`{"manager":"kubelet","operation":"Update","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:status":{%s"f:phase":{}}},"subresource":"status"}]},`+
			`"spec":{"nodeName":"node-%d","containers":[{"name":"web","image":"registry.example.com/shop/web:1.%d.0","resources":{"requests":{"cpu":"100m"}}}]},`+
			`"status":{"phase":"Running","podIP":"10.0.%d.%d"}}`, i, i%50, i*7919, i, i+100, i/5, &owned, &status, i%100, i%7, i/256%256, i%256))
		if err != nil {
			b.Fatal(err)
		}
		c.Objects = append(c.Objects, pod)
	}
	return c
}

func BenchmarkSave_10000Pods(b *testing.B) {
	c := pods(b, 10_000)
	for b.Loop() {
		if err := c.Save(io.Discard); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkLoad_10000Pods(b *testing.B) {
	var file bytes.Buffer
	if err := pods(b, 10_000).Save(&file); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := clustercopy.Load(bytes.NewReader(file.Bytes())); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkStart_10000Pods(b *testing.B) {
	c := pods(b, 10_000)
	for b.Loop() {
		server, err := apitest.Start(&apitest.Options{Copy: c})
		if err != nil {
			b.Fatal(err)
		}
		server.Close()
	}
}
