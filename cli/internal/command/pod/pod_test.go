package pod

import (
	"bytes"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/cli/internal/command"
	"github.com/anykind/anykind/discovery"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/stream"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured"
)

func TestDetachReader(t *testing.T) {
	for typed, want := range map[string]struct {
		text     string
		detached bool
	}{
		"abc":                {"abc", false},
		"ab\x10\x11cd":       {"ab", true},
		"\x10\x11":           {"", true},
		"a\x10b":             {"a\x10b", false},
		"\x10\x10\x11":       {"\x10", true},
		"\x11\x10":           {"\x11\x10", false},
		"x\x10\x10y\x10\x11": {"x\x10\x10y", true},
	} {
		keys, err := parseKeys("ctrl-p,ctrl-q")
		require.NoError(t, err)
		for _, reader := range []io.Reader{strings.NewReader(typed), iotest.OneByteReader(strings.NewReader(typed))} {
			got, err := io.ReadAll(&detachReader{reader: reader, keys: keys})
			assert.Equal(t, want.text, string(got), "%q", typed)
			if want.detached {
				require.ErrorIs(t, err, errDetached)
			} else {
				require.NoError(t, err)
			}
		}
	}
}

func TestParseKeys(t *testing.T) {
	keys, err := parseKeys("ctrl-P,a,ctrl-[")
	require.NoError(t, err)
	assert.Equal(t, []byte{0x10, 'a', 0x1b}, keys)
	for _, text := range []string{"ctrl-", "ctrl-1", "abc", "a,,b"} {
		_, err := parseKeys(text)
		require.Error(t, err, text)
	}
}

func TestParseFileSpec(t *testing.T) {
	for text, want := range map[string]fileSpec{
		"a/b":           {path: "a/b"},
		"web:/a":        {pod: "web", path: "/a"},
		"shop/web:/a:b": {namespace: "shop", pod: "web", path: "/a:b"},
		"web:":          {pod: "web"},
	} {
		got, err := parseFileSpec(text)
		require.NoError(t, err)
		assert.Equal(t, want, got, text)
	}
	for _, text := range []string{":a", "a/b/c:d"} {
		_, err := parseFileSpec(text)
		require.ErrorIs(t, err, errFileSpec, text)
	}
}

func TestPrefixWriter(t *testing.T) {
	var out bytes.Buffer
	w := &prefixWriter{out: &out, prefix: "[p] ", atStart: true}
	for _, text := range []string{"on", "e\ntwo\n", "\n", "three"} {
		n, err := io.WriteString(w, text)
		require.NoError(t, err)
		assert.Len(t, text, n)
	}
	assert.Equal(t, "[p] one\n[p] two\n[p] \n[p] three", out.String())
}

func TestPainter_PrefixWithoutControls(t *testing.T) {
	assert.Equal(t, "[pod/a b\ufffd[2J/c\ufffd] ", (&painter{}).prefix("a\nb\x1b[2J", "c\a"))
	colored := (&painter{useColor: true}).prefix("a\nb\x1b[2J", "c\a")
	assert.Regexp(t, `^\x1b\[\d+m\[pod/a b\x{fffd}\[2J/c\x{fffd}\]\x1b\[0m $`, colored)
}

func TestLogLimit(t *testing.T) {
	warned := 0
	limit := &logLimit{max: 1, warn: func(string, ...any) { warned++ }}
	one := stream.LogSource{Pod: "one"}
	limit.release(one) // without Follow
	two := stream.LogSource{Pod: "two"}
	assert.True(t, limit.admit(one))
	assert.True(t, limit.admit(one), "after a restart")
	assert.False(t, limit.admit(two))
	assert.False(t, limit.admit(two))
	assert.Equal(t, 1, warned)
	limit.release(one)
	assert.False(t, limit.admit(two), "the log after the restart is still followed")
	limit.release(one)
	assert.True(t, limit.admit(two))
}

func podOf(t *testing.T, name, fields string) *unstructured.Object {
	t.Helper()
	obj, err := unstructured.Decode([]byte(`{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "` + name + `"}, ` + fields + `}`))
	require.NoError(t, err)
	return obj
}

func TestComparePods(t *testing.T) {
	const ready = `"conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-02T03:04:0%"}]`
	const on = `"spec": {"nodeName": "n"}, "status": {"phase": "Running", `
	since := func(second string) string { return strings.ReplaceAll(ready, "%", second+"Z") }
	pods := []*unstructured.Object{
		podOf(t, "unassigned", `"status": {"phase": "Pending"}`),
		podOf(t, "pending", `"spec": {"nodeName": "n"}, "status": {"phase": "Pending"}`),
		podOf(t, "not-ready", on+`"conditions": [{"type": "Ready", "status": "False"}]}`),
		podOf(t, "later", on+since("5")+`}`),
		podOf(t, "restarted", on+since("1")+`, "containerStatuses": [{"restartCount": 3}]}`),
		podOf(t, "steady", on+since("1")+`}`),
	}
	order := func(compare func(a, b *unstructured.Object) int) string {
		var names []string
		for _, pod := range slices.SortedFunc(slices.Values(pods), compare) {
			names = append(names, pod.GetName())
		}
		return strings.Join(names, " ")
	}
	assert.Equal(t, "restarted steady later not-ready pending unassigned", order(compareForLogs))
	assert.Equal(t, "steady restarted later not-ready pending unassigned", order(compareForStreams))
}

func TestPodSelector(t *testing.T) {
	for fields, want := range map[string]string{
		`{"app": "web"}`:                  "app=web",
		`{"matchLabels": {"app": "web"}}`: "app=web",
		`{"matchExpressions": [{"key": "app", "operator": "In", "values": ["a", "b"]}]}`: "app in (a,b)",
	} {
		got, err := podSelector(podOf(t, "x", `"spec": {"selector": `+fields+`}`))
		require.NoError(t, err)
		assert.Equal(t, want, got)
	}
	for _, fields := range []string{`{}`, `{"selector": {}}`, `{"selector": 1}`, `{"selector": {"matchLabels": 1}}`} {
		_, err := podSelector(podOf(t, "x", `"spec": `+fields))
		require.Error(t, err, fields)
	}
}

func TestChooseContainer(t *testing.T) {
	pod := podOf(t, "web", `"spec": {"containers": [{"name": "a"}, {"name": "b"}], "initContainers": [{"name": "i"}]}`)
	var notices bytes.Buffer
	noticef := (&command.State{Streams: command.Streams{Err: &notices}}).Errorf
	name, err := chooseContainer(pod, "", noticef)
	require.NoError(t, err)
	assert.Equal(t, "a", name)
	assert.Equal(t, "Defaulted container \"a\" out of: a, b, i (init)\n", notices.String())
	pod.SetAnnotations(map[string]string{defaultContainer: "b"})
	notices.Reset()
	name, err = chooseContainer(pod, "", noticef)
	require.NoError(t, err)
	assert.Equal(t, "b", name)
	assert.Empty(t, notices.String())
	_, err = chooseContainer(pod, "c", noticef)
	require.EqualError(t, err, "container c is not valid for pod web out of: a, b, i (init)")
	pod = podOf(t, "web", `"spec": {"containers": [{"name": "a"}, {"name": "b\nerror: fake\u001b[2J"}]}`)
	_, err = chooseContainer(pod, "", noticef)
	require.NoError(t, err)
	assert.Equal(t, "Defaulted container \"a\" out of: a, b error: fake\ufffd[2J\n", notices.String())
}

// handleOn returns a handle without a server.
func handleOn(t *testing.T, resource, kind string) *dynamic.Resource {
	t.Helper()
	gv := schema.GroupVersion{Version: "v1"}
	conn, err := transport.New("http://localhost", nil, nil)
	require.NoError(t, err)
	return dynamic.New(conn, discovery.NewOffline(&discovery.Snapshot{})).ForAPIResource(&discovery.Resource{
		GVR: gv.WithResource(resource), GVK: gv.WithKind(kind), Namespaced: true,
	})
}

func TestParsePort(t *testing.T) {
	pod := podOf(t, "web", `"spec": {"containers": [{"ports": [{"name": "http", "containerPort": 8080}, {"containerPort": 53, "protocol": "UDP"}]}]}`)
	service := podOf(t, "web", `"spec": {"clusterIP": "10.0.0.1", "ports": [{"name": "web", "port": 80, "targetPort": "http"}, {"port": 81, "targetPort": 8181},
		{"name": "dns", "port": 53, "protocol": "UDP"}]}`)
	onPod := &found{resource: handleOn(t, "pods", "Pod"), object: pod, pod: pod}
	onService := &found{resource: handleOn(t, "services", "Service"), object: service, pod: pod}
	for text, want := range map[string]struct {
		on   *found
		port forwardedPort
		err  string
	}{
		"8080":      {onPod, forwardedPort{8080, "8080", 8080}, ""},
		"80:http":   {onPod, forwardedPort{80, "http", 8080}, ""},
		":http":     {onPod, forwardedPort{0, "http", 8080}, ""},
		"http":      {onPod, forwardedPort{8080, "http", 8080}, ""},
		":none":     {onPod, forwardedPort{}, "Pod 'web' does not have a named port 'none'"},
		"53":        {onPod, forwardedPort{}, "UDP protocol is not supported for 53"},
		"a:80":      {onPod, forwardedPort{}, "error parsing local port 'a'"},
		"1:":        {onPod, forwardedPort{}, "remote port cannot be empty"},
		"0":         {onPod, forwardedPort{}, "remote port must be > 0"},
		"1:2:3":     {onPod, forwardedPort{}, "invalid port format '1:2:3'"},
		"80":        {onService, forwardedPort{80, "80", 8080}, ""},
		"web":       {onService, forwardedPort{80, "web", 8080}, ""},
		"9000:81":   {onService, forwardedPort{9000, "81", 8181}, ""},
		"82":        {onService, forwardedPort{}, "Service web does not have a service port 82"},
		":dns":      {onService, forwardedPort{}, "UDP protocol is not supported for dns"},
		"5000:none": {onService, forwardedPort{}, "Service 'web' does not have a named port 'none'"},
	} {
		got, err := want.on.parsePort(text)
		if want.err != "" {
			require.ErrorContains(t, err, want.err, text)
			continue
		}
		require.NoError(t, err, text)
		assert.Equal(t, want.port, got, text)
	}
}

func TestProxyFilter_Defaults(t *testing.T) {
	filter := defaultProxyFilter()
	require.NoError(t, filter.compile())
	handler := rejectCredentials(filter.wrap(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})))
	for _, c := range []struct {
		host, path, header string
		code               int
	}{
		{"localhost:8001", "/api/v1/pods", "", 200},
		{"127.0.0.1", "/version", "", 200},
		{"[::1]:8001", "/version", "", 200},
		{"example.com", "/version", "", 403},
		{"localhost.example.com:8001", "/version", "", 403},
		{"127.0.0.1.example.com", "/version", "", 403},
		{"", "/version", "", 403},
		{"localhost", "/api/v1/namespaces/shop/pods/web-0/exec", "", 403},
		{"localhost", "/api/v1/namespaces/shop/pods/web-0/attach", "", 403},
		{"localhost", "/api/v1/namespaces/shop/pods/web-0/log", "", 200},
		{"localhost", "/version", "Authorization", 400},
		{"localhost", "/version", "Impersonate-User", 400},
	} {
		request := httptest.NewRequest(http.MethodGet, c.path, nil)
		request.Host = c.host
		if c.header != "" {
			request.Header.Set(c.header, "x")
		}
		response := httptest.NewRecorder()
		handler.ServeHTTP(response, request)
		assert.Equal(t, c.code, response.Code, "%s %s %s", c.host, c.path, c.header)
	}
	filter.rejectMethods = "POST,PUT"
	require.NoError(t, filter.compile())
	assert.False(t, filter.accepts("POST", "/", "localhost"))
	assert.True(t, filter.accepts("GET", "/", "localhost"))
	filter.acceptPaths = "("
	require.ErrorContains(t, filter.compile(), "--accept-paths")
}

func TestProxyFilter_RejectsForeignOrigins(t *testing.T) {
	for _, c := range []struct {
		name, accept, host string
		header             http.Header
		code               int
	}{
		{"no browser", "", "localhost:8001", nil, 200},
		{"another origin", "", "localhost:8001", http.Header{"Origin": {"http://evil.example"}}, 403},
		{"own origin", "", "localhost:8001", http.Header{"Origin": {"http://localhost:8001"}, "Sec-Fetch-Site": {"same-origin"}}, 200},
		{"own origin behind TLS", "", "localhost:8001", http.Header{"Origin": {"https://LOCALHOST:8001"}}, 200},
		{"own origin by another name", "", "localhost:8001", http.Header{"Origin": {"http://127.0.0.1:8001"}}, 403},
		{"another port", "", "localhost:8001", http.Header{"Origin": {"http://localhost:3000"}, "Sec-Fetch-Site": {"same-site"}}, 403},
		{"own host in another place", "", "localhost:8001", http.Header{"Origin": {"http://evil.example/://localhost:8001"}}, 403},
		{"another scheme", "", "localhost:8001", http.Header{"Origin": {"chrome-extension://localhost:8001"}}, 403},
		{"sandboxed page", "", "localhost:8001", http.Header{"Origin": {"null"}}, 403},
		{"empty origin", "", "localhost:8001", http.Header{"Origin": {""}}, 403},
		{"two origins", "", "localhost:8001", http.Header{"Origin": {"http://localhost:8001", "http://evil.example"}}, 403},
		{"rebound name", "", "evil.example:8001", http.Header{"Origin": {"http://evil.example:8001"}, "Sec-Fetch-Site": {"same-origin"}}, 403},
		{"typed by the user", "", "localhost:8001", http.Header{"Sec-Fetch-Site": {"none"}}, 200},
		{"image", "", "localhost:8001", http.Header{"Sec-Fetch-Site": {"cross-site"}}, 403},
		{"image of another port", "", "localhost:8001", http.Header{"Sec-Fetch-Site": {"same-site"}}, 403},
		{"unknown site", "", "localhost:8001", http.Header{"Sec-Fetch-Site": {"x"}}, 403},
		{"two sites", "", "localhost:8001", http.Header{"Sec-Fetch-Site": {"none", "cross-site"}}, 403},
		{"accepted", `^null$,^http://localhost:\d+$`, "localhost:8001",
			http.Header{"Origin": {"http://localhost:3000"}, "Sec-Fetch-Site": {"same-site"}}, 200},
		{"second accepted and foreign", "^http://a$", "localhost:8001", http.Header{"Origin": {"http://a", "http://b"}}, 403},
		{"image of an accepted origin", "^http://a$", "localhost:8001", http.Header{"Sec-Fetch-Site": {"cross-site"}}, 403},
		{"accepted origin for another host", "^http://a$", "evil.example", http.Header{"Origin": {"http://a"}}, 403},
	} {
		filter := defaultProxyFilter()
		filter.acceptOrigins = c.accept
		require.NoError(t, filter.compile())
		request := httptest.NewRequest(http.MethodPost, "/api/v1/namespaces", nil)
		request.Host = c.host
		maps.Copy(request.Header, c.header)
		response := httptest.NewRecorder()
		filter.wrap(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})).ServeHTTP(response, request)
		assert.Equal(t, c.code, response.Code, c.name)
	}
	filter := proxyFilter{acceptOrigins: "("}
	require.ErrorContains(t, filter.compile(), "--accept-origins")
}
