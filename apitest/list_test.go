package apitest_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/anykind/anykind/apitest"
	"github.com/anykind/anykind/unstructured"
)

const configMapsPath = "/api/v1/namespaces/default/configmaps"

func TestServer_ListPagesAndExpires(t *testing.T) {
	server := apitest.NewServer(t, nil)
	createConfigMaps(t, server, "a", "b", "c", "d", "e")
	first := do(t, server, "GET", configMapsPath+"?limit=2", "")
	assert.Equal(t, []string{"a", "b"}, first.names())
	assert.EqualValues(t, 3, first.metadata()["remainingItemCount"])
	token := fmt.Sprint(first.metadata()["continue"])

	do(t, server, "DELETE", configMapsPath+"/c", "")
	createConfigMaps(t, server, "f")
	second := do(t, server, "GET", configMapsPath+"?limit=2&continue="+token, "")
	assert.Equal(t, []string{"c", "d"}, second.names(), "at the revision of the first page")
	assert.Equal(t, first.metadata()["resourceVersion"], second.metadata()["resourceVersion"])

	server.Compact()
	expired := do(t, server, "GET", configMapsPath+"?limit=2&continue="+fmt.Sprint(second.metadata()["continue"]), "")
	assert.Equal(t, http.StatusGone, expired.code)
	assert.Equal(t, "Expired", expired.body["reason"])
	rest := do(t, server, "GET", configMapsPath+"?continue="+fmt.Sprint(expired.metadata()["continue"]), "")
	assert.Equal(t, []string{"e", "f"}, rest.names(), "at the latest revision")
	assert.NotContains(t, rest.metadata(), "continue")
}

func TestServer_ListOfOneNameHasNoMore(t *testing.T) {
	server := apitest.NewServer(t, nil)
	createConfigMaps(t, server, "a", "b")
	const query = "?limit=1&fieldSelector=metadata.name%3Da"
	one := do(t, server, "GET", configMapsPath+query, "")
	assert.Equal(t, []string{"a"}, one.names())
	assert.NotContains(t, one.metadata(), "continue")
	all := do(t, server, "GET", "/api/v1/configmaps"+query, "")
	assert.Equal(t, []string{"a"}, all.names())
	assert.Contains(t, all.metadata(), "continue", "other namespaces may have one, too")
}

func TestServer_ListErrorsAndVersions(t *testing.T) {
	server := apitest.NewServer(t, nil)
	createConfigMaps(t, server, "a")
	old := fmt.Sprint(do(t, server, "GET", configMapsPath, "").metadata()["resourceVersion"])
	createConfigMaps(t, server, "b")
	// The texts are those of kube-apiserver 1.36.3.
	tests := []struct {
		query, want string
		code        int
	}{
		{"limit=x", `strconv.ParseInt: parsing "x": invalid syntax`, 400},
		{"limit=-1", "a b", 200},
		{"limit=1&resourceVersion=0", "a b", 200},
		{"continue=abc", "invalid continue token: continue key is not valid: invalid character 'i' looking for beginning of value", 400},
		{"resourceVersion=abc", `invalid resource version: resourceVersion: Invalid value: "abc": strconv.ParseUint: parsing "abc": invalid syntax`, 400},
		{"resourceVersion=" + old, "a b", 200},
		{"resourceVersion=" + old + "&resourceVersionMatch=NotOlderThan", "a b", 200},
		{"resourceVersion=" + old + "&resourceVersionMatch=Exact", "a", 200},
		{"resourceVersion=" + old + "&limit=1", "a", 200},
		{"resourceVersionMatch=Exact", `ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided`, 422},
		{"resourceVersion=0&resourceVersionMatch=Exact", `ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: resourceVersionMatch "exact" is forbidden for resourceVersion "0"`, 422},
		{"resourceVersion=1&resourceVersionMatch=Foo", `ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Unsupported value: "Foo": supported values: "Exact", "NotOlderThan", ""`, 422},
		{"sendInitialEvents=true", `ListOptions.meta.k8s.io "" is invalid: sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list`, 422},
		{"watch=1&sendInitialEvents=true", `ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan`, 422},
		{"watch=1&resourceVersion=abc", `resourceVersion: Invalid value: "abc": strconv.ParseUint: parsing "abc": invalid syntax`, 500},
		{"fieldSelector=spec.foo=x", `field label not supported: spec.foo`, 400},
		{"fieldSelector=metadata.name=b", "b", 200},
		{"fieldSelector=metadata.name!=b", "a", 200},
		{"fieldSelector=xx", `invalid selector: 'xx'; can't understand 'xx'`, 400},
		{"labelSelector=name in (b,c)", "b", 200},
		{"labelSelector=a==b,,", "found ',', expected: identifier after ','", 400},
	}
	for _, test := range tests {
		t.Run(test.query, func(t *testing.T) {
			query, err := url.ParseQuery(test.query)
			require.NoError(t, err)
			r := do(t, server, "GET", configMapsPath+"?"+query.Encode(), "")
			assert.Equal(t, test.code, r.code)
			if r.code == http.StatusOK {
				assert.Equal(t, test.want, strings.Join(r.names(), " "))
			} else {
				assert.Equal(t, test.want, r.message())
			}
		})
	}
}

func TestServer_ListWaitsForFutureVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := apitest.NewServer(t, &apitest.Options{InMemory: true})
		start := time.Now()
		r := do(t, server, "GET", configMapsPath+"?resourceVersion=1000", "")
		assert.Equal(t, http.StatusGatewayTimeout, r.code)
		assert.Contains(t, r.message(), "Too large resource version: 1000, current: ")
		assert.Equal(t, "1", r.header.Get("Retry-After"))
		assert.Equal(t, 3*time.Second, time.Since(start))
	})
}

func TestServer_PathsMethodsAndMedia(t *testing.T) {
	server := apitest.NewServer(t, nil)
	createConfigMaps(t, server, "a")
	const noResource, noMethod = "the server could not find the requested resource", "the server does not allow this method on the requested resource"
	tests := []struct {
		method, path, body, header, want string
		code                             int
	}{
		{"GET", "/api/v1/foos", "", "", noResource, 404},
		{"GET", "/apis/nope.io/v1/foos", "", "", "404 page not found\n", 404},
		{"GET", "/api/v2", "", "", noResource, 404},
		{"GET", "/apis/apps/v1/namespaces/default/deployments/x/foo", "", "", noResource, 404},
		{"GET", "/api/v1/namespaces/default/pods/x", "", "", `pods "x" not found`, 404},
		{"GET", "/api/v1/namespaces/default/nodes", "", "", noResource, 404},
		{"GET", "/apis/apps/v2", "", "", noResource, 404},
		{"PUT", configMapsPath, "{}", "", noMethod, 405},
		{"POST", "/api/v1/pods", "{}", "", noMethod, 405},
		{"GET", configMapsPath + "/a?resourceVersion=abc", "", "", `resourceVersion: Invalid value: "abc": strconv.ParseUint: parsing "abc": invalid syntax`, 500},
		{"GET", configMapsPath + "?watch=1", "", "Accept: application/yaml", "only the following media types are accepted: application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch", 406},
		{"POST", configMapsPath + "/x", "{}", "", noMethod, 405},
		{"GET", configMapsPath, "", "Accept: application/foo", "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, application/vnd.kubernetes.protobuf, application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch", 406},
		{"POST", configMapsPath, "{}", "Content-Type: application/foo", "the body of the request was in an unknown format - accepted media types include: application/json, application/yaml, application/vnd.kubernetes.protobuf", 415},
		{"PATCH", configMapsPath + "/a", "{}", "Content-Type: application/json", "415: Unsupported Media Type", 415},
	}
	for _, test := range tests {
		t.Run(test.method+" "+test.path, func(t *testing.T) {
			var headers []string
			if test.header != "" {
				headers = append(headers, test.header)
			}
			r := do(t, server, test.method, test.path, test.body, headers...)
			assert.Equal(t, test.code, r.code)
			switch {
			case strings.HasPrefix(r.text, "apiVersion:"):
				assert.Contains(t, strings.ReplaceAll(r.text, "\n  ", " "), test.want)
			case r.body == nil:
				assert.Equal(t, test.want, r.text)
			default:
				assert.Equal(t, test.want, r.message())
			}
		})
	}
	head := do(t, server, "HEAD", configMapsPath+"/a", "")
	assert.Equal(t, http.StatusMethodNotAllowed, head.code)
	yaml := do(t, server, "GET", configMapsPath+"/a", "", "Accept: application/yaml")
	assert.Equal(t, "application/yaml", yaml.header.Get("Content-Type"))
	assert.Contains(t, yaml.text, "kind: ConfigMap\n")
	assert.Contains(t, do(t, server, "GET", configMapsPath+"/a?pretty=true", "").text, "\n  \"kind\": \"ConfigMap\"")
	table := do(t, server, "GET", configMapsPath, "", "Accept: application/json;as=Table;v=v1;g=meta.k8s.io")
	assert.Equal(t, "Table", table.body["kind"])
	partial := do(t, server, "GET", configMapsPath, "", "Accept: application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io")
	assert.Equal(t, "PartialObjectMetadataList", partial.body["kind"])
}

func TestServer_LargeBodiesAreCompressed(t *testing.T) {
	server := apitest.NewServer(t, nil)
	body := `{"metadata":{"name":"large"},"data":{"a":"` + strings.Repeat("x", 200_000) + `"}}`
	require.Equal(t, http.StatusCreated, do(t, server, "POST", configMapsPath, body).code)
	for path, want := range map[string]string{configMapsPath + "/large": "gzip", configMapsPath + "?limit=1&labelSelector=a": ""} {
		r := do(t, server, "GET", path, "", "Accept-Encoding: gzip")
		assert.Equal(t, want, r.header.Get("Content-Encoding"), path)
	}
	r := do(t, server, "POST", configMapsPath, strings.Repeat(" ", 4<<20))
	assert.Equal(t, http.StatusRequestEntityTooLarge, r.code)
}

func TestServer_PathsOfCustomResources(t *testing.T) {
	server := apitest.NewServer(t, &apitest.Options{Objects: []*unstructured.Object{object(t, widgetDefinition), object(t, widget)}})
	const path = "/apis/shop.example.com/v1/namespaces/default/widgets"
	const types = "application/json, application/yaml, application/vnd.kubernetes.protobuf"
	tests := []struct {
		method, path, body, header, want string
		code                             int
	}{
		{"GET", "/apis/shop.example.com/v1/foos", "", "", "404 page not found\n", 404},
		{"GET", "/apis/shop.example.com/v2/widgets", "", "", "404 page not found\n", 404},
		{"GET", "/apis/shop.example.com/v1/widgets/x", "", "", "404 page not found\n", 404},
		{"POST", "/apis/shop.example.com/v1/widgets", "{}", "", "404 page not found\n", 404},
		{"GET", path + "/x", "", "", `widgets.shop.example.com "x" not found`, 404},
		{"GET", path + "/x/foo", "", "", `widgets.shop.example.com "x" not found`, 404},
		{"PUT", path, "{}", "", "name must be provided", 400},
		{"POST", path, "{}", "Content-Type: application/vnd.kubernetes.protobuf", "the body of the request was in an unknown format - accepted media types include: " + types, 415},
		{"GET", path, "", "Accept: application/foo", "only the following media types are accepted: " + types, 406},
		{"GET", path + "?fieldSelector=spec.foo%3Dx", "", "", "field label not supported: spec.foo", 400},
		{"GET", path + "?fieldSelector=spec.color%3Dred", "", "", "one", 200},
		{"GET", path + "?fieldSelector=spec.color%21%3Dred", "", "", "", 200},
	}
	for _, test := range tests {
		t.Run(test.method+" "+test.path, func(t *testing.T) {
			headers := []string{}
			if test.header != "" {
				headers = append(headers, test.header)
			}
			r := do(t, server, test.method, test.path, test.body, headers...)
			assert.Equal(t, test.code, r.code)
			got := r.text
			if r.code == http.StatusOK {
				got = strings.Join(r.names(), " ")
			} else if r.body != nil {
				got = r.message()
			}
			assert.Equal(t, test.want, got)
		})
	}
}

func TestServer_ConversionWebhookNeedsServiceURL(t *testing.T) {
	definition := object(t, widgetDefinition)
	versions, _, err := unstructured.Get[[]any](definition, "spec", "versions")
	require.NoError(t, err)
	other := runtime.DeepCopyJSONValue(versions[0]).(map[string]any)
	other["name"] = "v2"
	other["storage"] = false
	require.NoError(t, unstructured.Set(definition, append(versions, other), "spec", "versions"))
	require.NoError(t, unstructured.Set(definition, map[string]any{"strategy": "Webhook", "webhook": map[string]any{
		"conversionReviewVersions": []any{"v1"}, "clientConfig": map[string]any{"service": map[string]any{"namespace": "shop", "name": "converter"}},
	}}, "spec", "conversion"))
	server := apitest.NewServer(t, &apitest.Options{Objects: []*unstructured.Object{definition, object(t, widget)}})
	assert.Equal(t, http.StatusOK, do(t, server, "GET", "/apis/shop.example.com/v1/widgets", "").code)
	r := do(t, server, "GET", "/apis/shop.example.com/v2/widgets", "")
	assert.Equal(t, http.StatusInternalServerError, r.code)
	assert.Equal(t, "conversion webhook for shop.example.com/v1, Kind=Widget failed: service shop/converter: the test has not said where it is", r.message())
}
