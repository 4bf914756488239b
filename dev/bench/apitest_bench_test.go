package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	unstructuredv1 "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"

	"github.com/anykind/anykind/apitest"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/cluster"
	"github.com/anykind/anykind/internal/testing/corpus"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured"
)

// smallDefinitions returns definitions of custom resources with a small schema.
func smallDefinitions(count int) (all []*unstructured.Object) {
	for i := range count {
		group := fmt.Sprintf("g%d.example.com", i)
		plural := "widgets"
		all = append(all, &unstructured.Object{Object: map[string]any{
			"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": plural + "." + group},
			"spec": map[string]any{
				"group": group, "scope": "Namespaced", "names": map[string]any{"plural": plural, "kind": "Widget"},
				"versions": []any{map[string]any{"name": "v1", "served": true, "storage": true, "schema": map[string]any{"openAPIV3Schema": map[string]any{
					"type": "object", "properties": map[string]any{"spec": map[string]any{"type": "object", "properties": map[string]any{"size": map[string]any{"type": "integer"}}}},
				}}}},
			},
		}})
	}
	return all
}

// BenchmarkAPITest_Start starts and closes a server of package apitest: with the built-in kinds, and with custom ones as well.
func BenchmarkAPITest_Start(b *testing.B) {
	start := func(b *testing.B, opts *apitest.Options) {
		b.Helper()
		for b.Loop() {
			server, err := apitest.Start(opts)
			require.NoError(b, err)
			server.Close()
		}
	}
	for _, definitions := range []int{0, 100} {
		for _, inMemory := range []bool{false, true} {
			b.Run(fmt.Sprintf("definitions=%d/memory=%t", definitions, inMemory), func(b *testing.B) {
				start(b, &apitest.Options{Objects: smallDefinitions(definitions), InMemory: inMemory})
			})
		}
	}
	b.Run("corpus", func(b *testing.B) {
		opts := &apitest.Options{}
		for _, file := range corpus.Definitions(b, 400) {
			definition, err := unstructured.Decode(file.JSON)
			require.NoError(b, err)
			delete(definition.Object, "status")
			unstructured.Delete(definition, "spec", "conversion") //nolint:errcheck // it may be absent
			opts.Objects = append(opts.Objects, definition)
		}
		start(b, opts)
		b.ReportMetric(float64(len(opts.Objects)), "definitions")
	})
}

// BenchmarkAPITest_Requests creates, gets, updates and deletes a ConfigMap: on a server of package apitest, on etcd and a
// kube-apiserver, and on client-go's fake, which has no server and no encoding. It needs the sandbox.
func BenchmarkAPITest_Requests(b *testing.B) {
	server := apitest.NewServer(b, nil)
	inMemory := apitest.NewServer(b, &apitest.Options{InMemory: true})
	cfg, err := transport.Load(b.Context(), &transport.LoadOptions{Path: cluster.Kubeconfig(b)})
	require.NoError(b, err)
	client, err := dynamic.Connect(b.Context(), cfg)
	require.NoError(b, err)
	b.Cleanup(client.Close)
	for _, side := range []struct {
		name   string
		client *dynamic.Client
	}{{"apitest", server.Client()}, {"apitest in memory", inMemory.Client()}, {"kube-apiserver", client}} {
		b.Run(side.name, func(b *testing.B) {
			configMaps, err := side.client.Resource(b.Context(), "configmaps")
			require.NoError(b, err)
			configMaps = configMaps.Namespace("default")
			for b.Loop() {
				obj, err := configMaps.Create(b.Context(), benchConfigMap(), nil)
				require.NoError(b, err)
				_, err = configMaps.Get(b.Context(), obj.GetName(), nil)
				require.NoError(b, err)
				obj.SetLabels(map[string]string{"app": "web"})
				_, err = configMaps.Update(b.Context(), obj, nil)
				require.NoError(b, err)
				_, err = configMaps.Delete(b.Context(), obj.GetName(), nil)
				require.NoError(b, err)
			}
			b.ReportMetric(4*float64(b.N)/b.Elapsed().Seconds(), "requests/s")
		})
	}
	b.Run("client-go fake", func(b *testing.B) {
		configMaps := fake.NewSimpleDynamicClient(k8sruntime.NewScheme()).Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace("default")
		for i := 0; b.Loop(); i++ {
			obj := &unstructuredv1.Unstructured{Object: benchConfigMap().Object}
			obj.SetName(strconv.Itoa(i)) // it does not generate names
			obj, err := configMaps.Create(b.Context(), obj, metav1.CreateOptions{})
			require.NoError(b, err)
			_, err = configMaps.Get(b.Context(), obj.GetName(), metav1.GetOptions{})
			require.NoError(b, err)
			obj.SetLabels(map[string]string{"app": "web"})
			_, err = configMaps.Update(b.Context(), obj, metav1.UpdateOptions{})
			require.NoError(b, err)
			require.NoError(b, configMaps.Delete(b.Context(), obj.GetName(), metav1.DeleteOptions{}))
		}
		b.ReportMetric(4*float64(b.N)/b.Elapsed().Seconds(), "requests/s")
	})
}

func benchConfigMap() *unstructured.Object {
	return &unstructured.Object{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"generateName": "bench-"}, "data": map[string]any{"key": "value"},
	}}
}

// BenchmarkAPITest_Memory reports the live heap of a server that has responded to a request, the second one of the process since the
// built-in kinds are shared, and the resident memory of the sandbox's etcd and kube-apiserver.
func BenchmarkAPITest_Memory(b *testing.B) {
	use := func() *apitest.Server {
		server, err := apitest.Start(nil)
		require.NoError(b, err)
		resource, err := server.Client().Resource(b.Context(), "configmaps")
		require.NoError(b, err)
		_, err = resource.Namespace("default").Create(b.Context(), benchConfigMap(), nil)
		require.NoError(b, err)
		return server
	}
	first := use()
	defer first.Close()
	for b.Loop() {
		before := liveHeap()
		server := use()
		b.ReportMetric(float64(liveHeap()-before)/1e6, "MB")
		server.Close()
	}
	for _, name := range []string{"etcd", "kube-apiserver"} {
		b.ReportMetric(residentMemory(b, name)/1e6, name+"-MB")
	}
}

func liveHeap() int64 {
	var now runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&now)
	return int64(now.HeapAlloc) //nolint:gosec // of a process
}

// residentMemory returns the largest resident memory of a process whose program begins with a name, in bytes; 0 where the
// system has no /proc.
func residentMemory(b *testing.B, name string) (largest float64) {
	b.Helper()
	processes, err := filepath.Glob("/proc/[0-9]*/status")
	require.NoError(b, err)
	for _, process := range processes {
		command, err := os.ReadFile(filepath.Join(filepath.Dir(process), "cmdline"))
		if err != nil || !strings.HasPrefix(filepath.Base(strings.SplitN(string(command), "\x00", 2)[0]), name) {
			continue
		}
		status, err := os.ReadFile(process)
		if err != nil {
			continue // it has ended
		}
		_, text, _ := strings.Cut(string(status), "VmRSS:")
		var kilobytes float64
		if _, err := fmt.Sscan(text, &kilobytes); err == nil {
			largest = max(largest, kilobytes*1024)
		}
	}
	return largest
}
