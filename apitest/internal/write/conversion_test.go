package write_test

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/anykind/anykind/apitest/internal/nested"
)

// conversionReview is a request to a conversion webhook.
type conversionReview struct {
	APIVersion string
	Kind       string
	Request    struct {
		UID               string
		DesiredAPIVersion string
		Objects           []map[string]any
	}
}

// newConverter returns the clientConfig of a conversion webhook. The path of the URL chooses its behavior.
func newConverter(t *testing.T) func(behavior string) map[string]any {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		var review conversionReview
		if err := json.NewDecoder(req.Body).Decode(&review); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		behavior := strings.TrimPrefix(req.URL.Path, "/")
		if behavior == "error" {
			http.Error(w, "out of order", http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(review.respond(behavior))
	}))
	t.Cleanup(server.Close)
	bundle := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	return func(behavior string) map[string]any {
		return map[string]any{"url": server.URL + "/" + behavior, "caBundle": base64.StdEncoding.EncodeToString(bundle)}
	}
}

func (r *conversionReview) respond(behavior string) map[string]any {
	converted := []any{}
	for _, obj := range r.Request.Objects {
		obj["apiVersion"] = r.Request.DesiredAPIVersion
		metadata := nested.EnsureMap(obj, "metadata")
		if spec := nested.Map(obj, "spec"); spec != nil {
			if strings.HasSuffix(r.Request.DesiredAPIVersion, "/v2") {
				spec["address"] = spec["host"]
				delete(spec, "host")
			} else {
				spec["host"] = spec["address"]
				delete(spec, "address")
			}
		}
		switch behavior {
		case "labels":
			nested.EnsureMap(metadata, "labels")["converted"] = "yes"
			metadata["generation"] = 9
		case "badlabels":
			nested.EnsureMap(metadata, "labels")["a b"] = "c d"
		case "renamed":
			metadata["name"] = "other"
		case "kind":
			obj["kind"] = "Other"
		case "version":
			obj["apiVersion"] = "other.example.com/v9"
		case "nometadata":
			delete(obj, "metadata")
		}
		converted = append(converted, obj)
	}
	response := map[string]any{"uid": r.Request.UID, "convertedObjects": converted, "result": map[string]any{"status": "Success"}}
	switch behavior {
	case "uid":
		response["uid"] = "other"
	case "few":
		response["convertedObjects"] = []any{}
	case "many":
		response["convertedObjects"] = append(converted, converted...)
	case "failure":
		response["result"] = map[string]any{"status": "Failure", "message": "too old"}
	case "silent":
		response["result"] = map[string]any{"status": "Failure"}
	case "noresult":
		delete(response, "result")
	}
	review := map[string]any{"apiVersion": r.APIVersion, "kind": r.Kind, "response": response}
	switch behavior {
	case "noresponse":
		delete(review, "response")
	case "nokind":
		delete(review, "kind")
	}
	return review
}

var converterBehaviors = []string{"good", "labels", "badlabels", "renamed", "kind", "version", "nometadata", "uid", "few", "many", "failure", "silent",
	"noresult", "noresponse", "nokind", "error"}

// convertedDefinition returns a definition whose versions are converted by a webhook.
func convertedDefinition(group, plural string, config map[string]any, subresources map[string]any) map[string]any {
	one := definition(group, plural)
	for _, version := range nested.Maps(one, "spec", "versions") {
		name := map[string]string{"v1": "host", "v2": "address"}[nested.String(version, "name")]
		property := func(schema map[string]any) map[string]any {
			return map[string]any{"type": "object", "properties": schema}
		}
		text := map[string]any{"type": "string"}
		version["schema"] = map[string]any{"openAPIV3Schema": property(map[string]any{
			"spec":   property(map[string]any{name: text, "size": map[string]any{"type": "integer"}, "mode": map[string]any{"type": "string", "default": "of " + name}}),
			"status": property(map[string]any{"phase": text}),
		})}
		version["subresources"] = subresources
	}
	nested.Map(one, "spec")["conversion"] = map[string]any{
		"strategy": "Webhook", "webhook": map[string]any{"clientConfig": config, "conversionReviewVersions": []any{"v1"}},
	}
	return one
}

// converted sends requests about converted objects and describes the results.
type converted struct {
	*definitions
	plural string
}

func (c *converted) request(name, method, version, suffix, mediaType string, body map[string]any) map[string]any {
	var data []byte
	if body != nil {
		var err error
		data, err = json.Marshal(body)
		require.NoError(c.t, err)
	}
	suffix, options, _ := strings.Cut(suffix, "?")
	query, err := url.ParseQuery(options)
	require.NoError(c.t, err)
	path := fmt.Sprintf("/apis/conversion.example.com/%s/namespaces/%s/%s%s", version, c.Namespace, c.plural, suffix)
	response, err := c.Requests.Send(c.t, method, path, query, mediaType, data)
	text := c.Outcome("", err)
	if err == nil {
		text += convertedText(response.Object)
		for _, item := range nested.Maps(response.Object, "items") {
			text += "\n  " + convertedText(item)
		}
	}
	c.responses[c.plural+" "+name] = text
	return response.Object
}

// convertedText returns the parts of an object that conversion changes.
func convertedText(obj map[string]any) string {
	metadata := nested.Map(obj, "metadata")
	text := fmt.Sprint(obj["apiVersion"], obj["kind"], metadata["name"], metadata["labels"], metadata["generation"], obj["spec"], obj["status"])
	var entries []string // sorted, since their order depends on the second
	for _, entry := range nested.Maps(metadata, "managedFields") {
		fields, _ := json.Marshal(entry["fieldsV1"])
		entries = append(entries, fmt.Sprint("\n    ", entry["manager"], entry["operation"], entry["apiVersion"], entry["subresource"], string(fields)))
	}
	slices.Sort(entries)
	return text + strings.Join(entries, "")
}

func compareConversion(t *testing.T, atLeast int, behaviors []string, subresources map[string]any, run func(c *converted)) {
	config := newConverter(t)
	compareDefinitions(t, atLeast, func(d *definitions) {
		for _, behavior := range behaviors {
			one := convertedDefinition("conversion.example.com", behavior, config(behavior), subresources)
			d.send("define "+behavior, "POST", definitionsPath, one)
			defer d.send("delete "+behavior, "DELETE", definitionsPath+"/"+behavior+".conversion.example.com", nil)
		}
		for _, behavior := range behaviors {
			d.conditions(behavior + ".conversion.example.com")
			run(&converted{definitions: d, plural: behavior})
		}
	})
}

func object(plural, version, name, host string) map[string]any {
	field := map[string]string{"v1": "host", "v2": "address"}[version]
	return map[string]any{
		"apiVersion": "conversion.example.com/" + version, "kind": strings.ToUpper(plural[:1]) + plural[1:],
		"metadata": map[string]any{"name": name}, "spec": map[string]any{field: host},
	}
}

func TestConversion_EachFailureAsOnTheServer(t *testing.T) {
	compareConversion(t, 4*len(converterBehaviors), converterBehaviors, nil, func(c *converted) {
		require.Eventually(c.t, func() bool { // served soon after it is established
			created := c.request("create v1", "POST", "v1", "?fieldManager=m", "application/json", object(c.plural, "v1", "a", "h"))
			return created != nil
		}, time.Minute, 50*time.Millisecond)
		c.request("get v1", "GET", "v1", "/a", "application/json", nil)
		c.request("get v2", "GET", "v2", "/a", "application/json", nil)
		c.request("create v2", "POST", "v2", "?fieldManager=m", "application/json", object(c.plural, "v2", "b", "h"))
		c.request("update v2", "PUT", "v2", "/a?fieldManager=n", "application/json", object(c.plural, "v2", "a", "changed"))
		c.request("merge v2", "PATCH", "v2", "/a?fieldManager=n", mergePatch, map[string]any{"spec": map[string]any{"address": "merged"}})
		c.request("apply v2", "PATCH", "v2", "/a?fieldManager=o&force=true", "application/apply-patch+yaml", object(c.plural, "v2", "a", "applied"))
		c.request("apply new v2", "PATCH", "v2", "/c?fieldManager=o&force=true", "application/apply-patch+yaml", object(c.plural, "v2", "c", "applied"))
		c.request("delete v2", "DELETE", "v2", "/a", "application/json", nil)
		c.request("get after", "GET", "v1", "/a", "application/json", nil)
	})
}

func TestConversion_VerbsAsOnTheServer(t *testing.T) {
	subresources := map[string]any{"status": map[string]any{}}
	compareConversion(t, 15, []string{"verbs"}, subresources, func(c *converted) {
		for _, version := range []string{"v1", "v2"} {
			require.Eventually(c.t, func() bool {
				return c.request("create "+version, "POST", version, "?fieldManager=m", "application/json", object(c.plural, version, version, "h")) != nil
			}, time.Minute, 50*time.Millisecond)
			for _, as := range []string{"v1", "v2"} {
				c.request("get "+version+" as "+as, "GET", as, "/"+version, "application/json", nil)
			}
		}
		for _, as := range []string{"v1", "v2"} {
			c.request("list "+as, "GET", as, "", "application/json", nil)
			c.request("dry run "+as, "POST", as, "?dryRun=All&fieldManager=m", "application/json", object(c.plural, as, "dry", "h"))
			c.request("merge "+as, "PATCH", as, "/v1?fieldManager=merge", mergePatch, map[string]any{"spec": map[string]any{"size": len(as) + int(as[1])}})
			c.request("JSON patch "+as, "PATCH", as, "/v2?fieldManager=json", mergePatch, map[string]any{"metadata": map[string]any{"labels": map[string]any{"a": as}}})
			c.request("status "+as, "PATCH", as, "/v1/status?fieldManager=status", mergePatch, map[string]any{"status": map[string]any{"phase": as}})
			c.request("apply "+as, "PATCH", as, "/v1?fieldManager=first", "application/apply-patch+yaml", object(c.plural, as, "v1", "h"))
			c.request("conflict "+as, "PATCH", as, "/v1?fieldManager=second", "application/apply-patch+yaml", object(c.plural, as, "v1", "other"))
			c.request("force "+as, "PATCH", as, "/v1?fieldManager=second&force=true", "application/apply-patch+yaml", object(c.plural, as, "v1", "other"+as))
			c.request("apply nothing "+as, "PATCH", as, "/v1?fieldManager=second", "application/apply-patch+yaml", map[string]any{
				"apiVersion": "conversion.example.com/" + as, "kind": "Verbs", "metadata": map[string]any{"name": "v1"}})
		}
		c.request("delete with finalizer", "PATCH", "v2", "/v2?fieldManager=json", mergePatch, map[string]any{"metadata": map[string]any{"finalizers": []any{"example.com/f"}}})
		c.request("delete v2", "DELETE", "v2", "/v2", "application/json", nil)
		c.request("release", "PATCH", "v2", "/v2?fieldManager=json", mergePatch, map[string]any{"metadata": map[string]any{"finalizers": nil}})
		c.request("collection", "DELETE", "v2", "", "application/json", nil)
		c.request("list after", "GET", "v2", "", "application/json", nil)
	})
}

// TestConversion_WatchesAsOnTheServer compares the events of a watch in the version that is not stored.
func TestConversion_WatchesAsOnTheServer(t *testing.T) {
	compareConversion(t, 5, []string{"watched"}, nil, func(c *converted) {
		require.Eventually(c.t, func() bool {
			return c.request("create", "POST", "v1", "", "application/json", object(c.plural, "v1", "a", "h")) != nil
		}, time.Minute, 50*time.Millisecond)
		resource := c.Handle(c.t, c.Object(c.t, "apiVersion: conversion.example.com/v2\nkind: Watched\nmetadata: {name: a}"))
		var events []string
		for event, err := range resource.Watch(c.t.Context(), &metav1.ListOptions{FieldSelector: "metadata.name!=other"}) {
			require.NoError(c.t, err)
			events = append(events, fmt.Sprint(event.Type, " ", event.Object.GetAPIVersion(), event.Object.Object["spec"]))
			if event.Type == watch.Deleted {
				break
			}
			if event.Type == watch.Added {
				c.request("update", "PATCH", "v1", "/a", mergePatch, map[string]any{"spec": map[string]any{"host": "changed"}})
			} else {
				c.request("delete", "DELETE", "v1", "/a", "application/json", nil)
			}
		}
		c.responses["events"] = strings.Join(events, "\n")
	})
}
