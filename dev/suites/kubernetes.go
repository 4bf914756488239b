package main

import (
	"strings"
	"time"
)

const (
	dryRunTest  = "test/integration/dryrun/dryrun_test.go"
	dynamicTest = "test/integration/client/dynamic_client_test.go"
)

// kubernetes is the API server's own integration tests. Only the tests of dry run and of the dynamic client run here.
var kubernetes = &upstream{
	name: "kubernetes", module: "k8s.io/kubernetes", startsServer: true,
	tests:    []string{"test/integration/dryrun", "test/integration/client"},
	requires: []string{".", "compat"},
	patches: []patch{
		overAnykind(dryRunTest, "kubeapiservertesting.StartTestServer", "anykind.StartTestServer", 1),
		overAnykind(dynamicTest, "kubeapiservertesting.StartTestServerOrDie", "anykind.StartTestServerOrDie", 6),
		replaceText{file: dynamicTest, old: "\tkubeapiservertesting \"k8s.io/kubernetes/cmd/kube-apiserver/app/testing\"\n"},
		replaceCalls{file: dryRunTest, old: "dynamic.NewForConfig", new: "anykind.NewDynamic", count: 1},
		replaceCalls{file: dynamicTest, old: "dynamic.NewForConfig", new: "anykind.NewDynamic", count: 9},
	},
}

// overAnykind replaces calls of old by calls of a function in overlay/kubernetes/anykind.
func overAnykind(file, old, function string, count int) replaceCalls {
	return replaceCalls{file: file, old: old, new: function, count: count, imports: "anykind.test/kubernetes/anykind"}
}

// dynamicClientTests are the tests of the dynamic client. CBOR tests select an encoding by the feature gates of client-go's own
// client.
var dynamicClientTests = []struct {
	name string
	cbor bool
}{
	{"TestDynamicClient", false},
	{"TestDynamicClientWatch", false},
	{"TestDynamicClientWatchWithCBOR", true},
	{"TestUnstructuredExtract", false},
	{"TestDynamicClientCBOREnablement", true},
	{"TestUnsupportedMediaTypeCircuitBreakerDynamicClient", true},
}

func kubernetesSuites() []*suite {
	var all, withoutCBOR []string
	for _, one := range dynamicClientTests {
		all = append(all, one.name)
		if !one.cbor {
			withoutCBOR = append(withoutCBOR, one.name)
		}
	}
	one := func(name, folder, run, with string, env ...string) *suite {
		return &suite{
			name: "kubernetes/" + name, upstream: kubernetes, pkg: "./test/integration/" + folder, run: run, ci: true,
			timeout: 20 * time.Minute, env: env, with: with,
		}
	}
	const conn, adapted, anykind = "connection", "connection, dynamic client", "SUITE_CLIENT=anykind"
	return []*suite{
		one("dryrun", "dryrun", "", conn),
		one("dryrun with adapters", "dryrun", "", adapted, anykind),
		one("client", "client", anyOf(all), conn),
		one("client with adapters", "client", anyOf(withoutCBOR), adapted, anykind),
	}
}

// anyOf returns the -test.run pattern of several tests.
func anyOf(tests []string) string { return "^(" + strings.Join(tests, "|") + ")$" }
