package write_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/apitest/internal/nested"
	"github.com/anykind/anykind/apitest/internal/testing/compare"
)

const definitionsPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

// definition returns a definition with the versions v1, which is stored, and v2.
func definition(group, plural string) map[string]any {
	version := func(name string) any {
		return map[string]any{"name": name, "served": true, "storage": name == "v1",
			"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}
	}
	return map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": plural + "." + group},
		"spec": map[string]any{
			"group": group, "scope": "Namespaced", "names": map[string]any{"plural": plural, "kind": strings.ToUpper(plural[:1]) + plural[1:]},
			"versions": []any{version("v1"), version("v2")},
		},
	}
}

// definitions sends writes of definitions and describes the results.
type definitions struct {
	*compare.Server
	t         *testing.T
	responses map[string]string
}

func (d *definitions) send(name, method, path string, body any) {
	data, err := json.Marshal(body)
	require.NoError(d.t, err)
	mediaType := "application/json"
	if method == "PATCH" {
		mediaType = mergePatch
	}
	path, options, _ := strings.Cut(path, "?")
	query, err := url.ParseQuery(options)
	require.NoError(d.t, err)
	response, err := d.Requests.Send(d.t, method, path, query, mediaType, data)
	d.responses[name] = d.Outcome("", err)
	if err == nil && method != "DELETE" {
		d.responses[name] += fmt.Sprint(" stored: ", nested.Slice(response.Object, "status", "storedVersions"))
	}
}

// conditions describes the conditions of a definition, when it is established.
func (d *definitions) conditions(name string) {
	var object map[string]any
	require.Eventually(d.t, func() bool {
		response, err := d.Requests.Send(d.t, "GET", definitionsPath+"/"+name, nil, "application/json", nil)
		object = response.Object
		protected := strings.HasSuffix(name, "k8s.io")
		return err == nil && nested.HasCondition(object, "Established") && (!protected || nested.Condition(object, "KubernetesAPIApprovalPolicyConformant") != nil)
	}, time.Minute, 20*time.Millisecond)
	texts := map[string]string{}
	for _, condition := range nested.Maps(object, "status", "conditions") {
		texts[nested.String(condition, "type")] = fmt.Sprint(condition["status"], " ", condition["reason"], " ", condition["message"])
	}
	for _, kind := range slices.Sorted(maps.Keys(texts)) {
		d.responses[name+" condition "+kind] = texts[kind]
	}
}

// compareDefinitions calls run with the sandbox's API server and with apitest.
func compareDefinitions(t *testing.T, atLeast int, run func(d *definitions)) {
	t.Helper()
	compare.Responses(t, nil, atLeast, func(t *testing.T, s *compare.Server) map[string]string {
		d := &definitions{Server: s, t: t, responses: map[string]string{}}
		run(d)
		return d.responses
	})
}

func TestDefinitions_StoredVersionsAsOnTheServer(t *testing.T) {
	compareDefinitions(t, 12, func(d *definitions) {
		path := definitionsPath + "/stores.stored.example.com"
		one := definition("stored.example.com", "stores")
		d.send("create", "POST", definitionsPath, one)
		defer d.send("delete", "DELETE", path, nil)
		d.conditions("stores.stored.example.com")
		versions := nested.Maps(one, "spec", "versions")
		versions[0]["storage"] = false
		versions[1]["storage"] = true
		d.send("switch", "PATCH", path, map[string]any{"spec": one["spec"]})
		only := map[string]any{"spec": map[string]any{"versions": []any{versions[1]}}}
		d.send("remove a stored version", "PATCH", path, only)
		status := func(versions ...string) any {
			return map[string]any{"status": map[string]any{"storedVersions": versions}}
		}
		d.send("status with unknown", "PATCH", path+"/status", status("v2", "v9"))
		d.send("update after unknown", "PATCH", path, map[string]any{"metadata": map[string]any{"labels": map[string]any{"a": "b"}}})
		d.send("status without storage version", "PATCH", path+"/status", status("v1"))
		d.send("update after that", "PATCH", path, map[string]any{"metadata": map[string]any{"labels": map[string]any{"a": "c"}}})
		d.send("empty status", "PATCH", path+"/status", status())
		d.send("remove it again", "PATCH", path, only)
	})
}

func TestDefinitions_ApprovalAsOnTheServer(t *testing.T) {
	annotations := map[string]any{
		"absent": nil, "empty": "", "approved": "https://github.com/kubernetes/kubernetes/pull/78458",
		"unapproved": "unapproved, for a test", "invalid": "yes", "path": "/a/b", "other": "file:///a",
	}
	compareDefinitions(t, 20, func(d *definitions) {
		for _, group := range []string{"foo.k8s.io", "foo.kubernetes.io", "foo.x-k8s.io"} {
			for name, value := range annotations {
				one := definition(group, name)
				nested.Map(one, "metadata")["annotations"] = map[string]any{"api-approved.kubernetes.io": value}
				if value == nil {
					delete(nested.Map(one, "metadata"), "annotations")
				}
				d.send(group+" "+name, "POST", definitionsPath, one)
				path := definitionsPath + "/" + name + "." + group
				if group == "foo.k8s.io" && (name == "approved" || name == "unapproved") {
					d.conditions(name + "." + group)
					for other, value := range annotations {
						d.send(name+" to "+other, "PATCH", path+"?dryRun=All", map[string]any{"metadata": map[string]any{"annotations": map[string]any{"api-approved.kubernetes.io": value}}})
					}
				}
				d.send("delete "+group+" "+name, "DELETE", path, nil)
			}
		}
	})
}

// conversions are values of spec.conversion.
var conversions = map[string]string{
	"none with webhook": `{"strategy":"None","webhook":{"clientConfig":{"url":"https://a/b"},"conversionReviewVersions":["v1"]}}`,
	"unknown strategy":  `{"strategy":"Some"}`,
	"no strategy":       `{}`,
	"no webhook":        `{"strategy":"Webhook"}`,
	"no client":         `{"strategy":"Webhook","webhook":{"conversionReviewVersions":["v1"]}}`,
	"unknown versions":  `{"strategy":"Webhook","webhook":{"clientConfig":{"url":"https://a/b"},"conversionReviewVersions":["v9"]}}`,
	"no versions":       `{"strategy":"Webhook","webhook":{"clientConfig":{"url":"https://a/b"},"conversionReviewVersions":[]}}`,
	"equal versions":    `{"strategy":"Webhook","webhook":{"clientConfig":{"url":"https://a/b"},"conversionReviewVersions":["v1","v1"]}}`,
	"invalid version":   `{"strategy":"Webhook","webhook":{"clientConfig":{"url":"https://a/b"},"conversionReviewVersions":["v1","V_1"]}}`,
}

// clientConfigs are values of spec.conversion.webhook.clientConfig.
var clientConfigs = []string{
	`{}`, `{"url":"https://a/b","service":{"name":"a","namespace":"b"}}`,
	`{"url":"https://a/b"}`, `{"url":"http://127.0.0.1:1/convert"}`, `{"url":"https://foo.com/a?b=c"}`, `{"url":"https://a:b@foo.com/a#c"}`,
	`{"url":"https:///a"}`, `{"url":"https://[::"}`, `{"url":""}`, `{"url":"a"}`,
	`{"service":{"name":"a","namespace":"b"}}`, `{"service":{"name":"","namespace":""}}`, `{"service":{"name":"a","namespace":"b","port":99999,"path":"x"}}`,
	`{"service":{"name":"a","namespace":"b","port":0}}`, `{"service":{"name":"a","namespace":"b","path":""}}`,
	`{"service":{"name":"a","namespace":"b","path":"/"}}`, `{"service":{"name":"a","namespace":"b","path":"//"}}`,
	`{"service":{"name":"a","namespace":"b","path":"/a//b/"}}`, `{"service":{"name":"a","namespace":"b","path":"/a_b/c"}}`, `{"service":{"name":"a","namespace":"b","path":"a/"}}`,
	`{"url":"https://a/b","caBundle":"aGVsbG8="}`,
}

func TestDefinitions_ConversionAsOnTheServer(t *testing.T) {
	cases := maps.Clone(conversions)
	for _, config := range clientConfigs {
		cases[config] = `{"strategy":"Webhook","webhook":{"clientConfig":` + config + `,"conversionReviewVersions":["v1"]}}`
	}
	compareDefinitions(t, len(cases), func(d *definitions) {
		for name, conversion := range cases {
			one := definition("conversion.example.com", "conversions")
			nested.Map(one, "spec")["conversion"] = json.RawMessage(conversion)
			d.send(name, "POST", definitionsPath+"?dryRun=All", one)
		}
	})
}
