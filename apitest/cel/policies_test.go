package cel_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/apitest"
	"github.com/anykind/anykind/apitest/cel"
	"github.com/anykind/anykind/apitest/internal/testing/compare"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured"
)

// policy is an admission policy with its binding, limited to the namespace of the test.
type policy struct {
	name, operations, resources string
	spec                        string // further fields of the policy
	binding                     string // further fields of the binding
}

func (p policy) yamls(kind string) []string {
	group, version, resource := "''", "v1", p.resources
	if parts := strings.Split(p.resources, " "); len(parts) == 3 {
		group, version, resource = parts[0], parts[1], parts[2]
	}
	further := ", reinvocationPolicy: IfNeeded"
	actions := ""
	if kind == "ValidatingAdmissionPolicy" {
		further = ""
		actions = ", validationActions: [Deny]"
		if strings.Contains(p.binding, "validationActions") {
			actions = ""
		}
	}
	if strings.Contains(p.spec, "reinvocationPolicy") {
		further = ""
	}
	return []string{
		fmt.Sprintf(`{apiVersion: admissionregistration.k8s.io/v1, kind: %s, metadata: {name: %s.NAMESPACE}, spec: {matchConstraints: {
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: NAMESPACE}},
  resourceRules: [{apiGroups: [%s], apiVersions: [%s], operations: [%s], resources: [%s]}]}, %s%s}}`, kind, p.name, group, version, p.operations, resource, p.spec, further),
		fmt.Sprintf(`{apiVersion: admissionregistration.k8s.io/v1, kind: %sBinding, metadata: {name: %s.NAMESPACE}, spec: {policyName: %s.NAMESPACE%s%s}}`,
			kind, p.name, p.name, actions, p.binding),
	}
}

var validatingPolicies = []policy{
	{"replicas", "CREATE, UPDATE", "apps v1 deployments", `paramKind: {apiVersion: v1, kind: ConfigMap}, validations: [
  {expression: "object.spec.replicas <= int(params.data.maximum)", messageExpression: "'at most ' + params.data.maximum"}]`,
		`, paramRef: {name: limits, namespace: NAMESPACE, parameterNotFoundAction: Deny}`},
	{"conditions", "CREATE", "configmaps", `variables: [{name: owner, expression: "object.metadata.?labels[?'owner'].orValue('')"}],
  matchConditions: [{name: checked, expression: "has(object.metadata.labels) && 'checked' in object.metadata.labels"}],
  validations: [{expression: "variables.owner != ''", message: it has no owner, reason: Forbidden},
    {expression: "variables.owner.startsWith('team-')", messageExpression: "'owner ' + variables.owner + ' is no team'"}]`, ""},
	{"warn", "CREATE", "secrets", `validations: [{expression: "object.type == 'Opaque'"}]`, `, validationActions: [Warn, Audit]`},
	{"denied-audit", "CREATE", "secrets", `validations: [{expression: "!has(object.data) || !('forbidden' in object.data)"}]`, ""},
	{"no-parameters", "CREATE", "services", `paramKind: {apiVersion: v1, kind: ConfigMap}, validations: [{expression: "true"}]`,
		`, paramRef: {selector: {matchLabels: {no: such}}, parameterNotFoundAction: Deny}`},
	{"allowed-parameters", "CREATE", "services", `paramKind: {apiVersion: v1, kind: ConfigMap}, validations: [{expression: "params == null"}]`,
		`, paramRef: {selector: {matchLabels: {no: such}}, parameterNotFoundAction: Allow}`},
	{"unknown-kind", "CREATE", "serviceaccounts", `paramKind: {apiVersion: example.com/v1, kind: Unknown}, validations: [{expression: "true"}]`, `, paramRef: {name: a, parameterNotFoundAction: Allow}`},
	{"runtime-error", "CREATE", "limitranges", `validations: [{expression: "object.spec.limits[3].type == 'Container'"}]`, ""},
	{"ignored-error", "CREATE", "configmaps", `failurePolicy: Ignore, validations: [{expression: "object.data.missing == 'x'"}]`, ""},
	{"protected", "DELETE", "configmaps", `validations: [{expression: "!has(oldObject.metadata.labels) || !('protected' in oldObject.metadata.labels)", message: it is protected}]`, ""},
	{"immutable", "UPDATE", "configmaps", `validations: [{expression: "object.?data[?'fixed'] == oldObject.?data[?'fixed']", message: fixed is immutable}]`, ""},
	{"scale", "UPDATE", "apps v1 deployments/scale", `validations: [{expression: "object.spec.replicas <= 5", message: "more than 5"}]`, ""},
	{"labels", "CREATE", "podtemplates", `validations: [{expression: "namespaceObject.metadata.name == object.metadata.namespace && request.operation == 'CREATE' && request.userInfo.username != ''"},
  {expression: "authorizer.group('').resource('secrets').namespace(object.metadata.namespace).check('create').allowed()", message: not allowed to create secrets}]`, ""},
	{"widgets", "CREATE, UPDATE", "policies.example.com v1 widgets", `validations: [{expression: "object.apiVersion == 'policies.example.com/v1' && object.spec.size < 10", message: too large}]`, ""},
	{"exact", "CREATE", "policies.example.com v1beta1 widgets", `validations: [{expression: "object.spec.size != 7"}]`, ", matchResources: {matchPolicy: Exact, resourceRules: [{apiGroups: [policies.example.com], apiVersions: [v1beta1], operations: ['*'], resources: ['*']}]}"},
	{"exclude", "'*'", "endpoints", `validations: [{expression: "false", message: always}]`, `, matchResources: {excludeResourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [UPDATE], resources: [endpoints]}], objectSelector: {matchExpressions: [{key: free, operator: DoesNotExist}]}}`},
	{"marker", "CREATE", "replicationcontrollers", `validations: [{expression: "object.metadata.name != 'denied'"}]`, ""},
}

var mutatingPolicies = []policy{
	{"m-labels", "CREATE", "configmaps", `mutations: [{patchType: ApplyConfiguration, applyConfiguration: {expression: "Object{metadata: Object.metadata{labels: Object.metadata.labels{mutated: 'yes'}}}"}}]`, ""},
	{"m-patch", "CREATE, UPDATE", "secrets", `matchConditions: [{name: plain, expression: "!has(object.metadata.annotations)"}], mutations: [{patchType: JSONPatch, jsonPatch: {expression: "[JSONPatch{op: 'add', path: '/metadata/annotations', value: {'by': request.operation}}]"}}]`, ""},
	{"m-sidecar", "CREATE", "apps v1 deployments", `mutations: [{patchType: ApplyConfiguration, applyConfiguration: {expression: "Object{spec: Object.spec{template: Object.spec.template{spec: Object.spec.template.spec{containers: [Object.spec.template.spec.containers{name: 'proxy', image: 'proxy:1'}]}}}}"}}]`, ""},
	{"m-atomic", "CREATE", "services", `matchConditions: [{name: atomic, expression: "has(object.metadata.labels)"}], mutations: [{patchType: ApplyConfiguration, applyConfiguration: {expression: "Object{metadata: Object.metadata{finalizers: ['example.com/a']}, spec: Object.spec{externalIPs: ['10.1.1.1']}}"}}]`, ""},
	// The order of policies is not defined. Each of these two needs the result of the other.
	{"m-first", "CREATE", "resourcequotas", `mutations: [{patchType: JSONPatch, jsonPatch: {expression: "has(object.metadata.labels) && 'second' in object.metadata.labels && !('first' in object.metadata.labels) ? [JSONPatch{op: 'add', path: '/metadata/labels/first', value: 'a'}] : []"}}]`, ""},
	{"m-second", "CREATE", "resourcequotas", `mutations: [{patchType: JSONPatch, jsonPatch: {expression: "has(object.metadata.labels) ? [] : [JSONPatch{op: 'add', path: '/metadata/labels', value: {'second': 'b'}}]"}}]`, ""},
	{"m-error", "CREATE", "limitranges", `matchConditions: [{name: named, expression: "object.metadata.name == 'mutated'"}], mutations: [{patchType: JSONPatch, jsonPatch: {expression: "[JSONPatch{op: 'remove', path: '/spec/nothing'}]"}}]`, ""},
	{"m-ignored", "CREATE", "serviceaccounts", `failurePolicy: Ignore, mutations: [{patchType: JSONPatch, jsonPatch: {expression: "[JSONPatch{op: 'remove', path: '/spec/nothing'}]"}}]`, ""},
	{"m-params", "CREATE", "podtemplates", `paramKind: {apiVersion: v1, kind: ConfigMap}, mutations: [{patchType: JSONPatch, jsonPatch: {expression: "[JSONPatch{op: 'add', path: '/metadata/labels', value: {'maximum': params.data.maximum}}]"}}]`,
		`, paramRef: {name: limits, namespace: NAMESPACE, parameterNotFoundAction: Deny}`},
	{"m-widgets", "CREATE", "policies.example.com v1 widgets", `mutations: [{patchType: ApplyConfiguration, applyConfiguration: {expression: "Object{spec: Object.spec{color: 'red'}}"}}]`, ""},
	{"m-marker", "CREATE", "replicationcontrollers", `mutations: [{patchType: JSONPatch, jsonPatch: {expression: "[JSONPatch{op: 'add', path: '/metadata/finalizers', value: ['example.com/marker']}]"}}]`, ""},
}

const widgets = `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: widgets.policies.example.com}, spec: {group: policies.example.com,
  scope: Namespaced, names: {plural: widgets, kind: Widget}, versions: [
  {name: v1, served: true, storage: true, schema: &schema {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer}, color: {type: string}}}}}}},
  {name: v1beta1, served: true, storage: false, schema: *schema}]}}`

// write is a request to be compared: a creation unless it has a patch, or isDelete is set.
type write struct {
	name, yaml, patch, subresource string
	isDelete                       bool
}

func writes() []write {
	object := func(apiVersion, kind, name, metadata, further string) string {
		return fmt.Sprintf(`{apiVersion: %s, kind: %s, metadata: {name: %s%s}%s}`, apiVersion, kind, name, metadata, further)
	}
	deployment := func(name string, replicas int) string {
		return object("apps/v1", "Deployment", name, "", fmt.Sprintf(`, spec: {replicas: %d, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: web, image: web}]}}}`, replicas))
	}
	configMap := func(name, metadata, further string) string { return object("v1", "ConfigMap", name, metadata, further) }
	template := object("v1", "PodTemplate", "a", "", `, template: {spec: {containers: [{name: web, image: web}]}}`)
	quota := object("v1", "ResourceQuota", "a", "", `, spec: {hard: {pods: 3}}`)
	limits := `, spec: {limits: [{type: Pod, max: {cpu: 1}}]}`
	widget := func(version, name string, size int) string {
		return object("policies.example.com/"+version, "Widget", name, "", fmt.Sprintf(`, spec: {size: %d}`, size))
	}
	service := func(metadata string) string {
		return object("v1", "Service", "a", metadata, `, spec: {clusterIP: None}`)
	}
	return []write{
		{name: "within the parameter", yaml: deployment("few", 3)},
		{name: "above the parameter", yaml: deployment("many", 4)},
		{name: "update above the parameter", yaml: deployment("few", 3), patch: `{"spec":{"replicas":4}}`},
		{name: "scale", yaml: deployment("few", 3), patch: `{"spec":{"replicas":5}}`, subresource: "scale"},
		{name: "scale above the limit", yaml: deployment("few", 3), patch: `{"spec":{"replicas":6}}`, subresource: "scale"},
		{name: "condition does not match", yaml: configMap("a", "", ", data: {fixed: a}")},
		{name: "first validation", yaml: configMap("b", ", labels: {checked: ''}", "")},
		{name: "second validation", yaml: configMap("b", ", labels: {checked: '', owner: me}", "")},
		{name: "condition matches", yaml: configMap("b", ", labels: {checked: '', owner: team-a, protected: ''}", "")},
		{name: "immutable", yaml: configMap("a", "", ""), patch: `{"data":{"fixed":"b"}}`},
		{name: "immutable but for further fields", yaml: configMap("a", "", ""), patch: `{"data":{"free":"b"}}`},
		{name: "delete protected", yaml: configMap("b", "", ""), isDelete: true},
		{name: "delete", yaml: configMap("a", "", ""), isDelete: true},
		{name: "warning", yaml: object("v1", "Secret", "a", "", ", type: example.com/a")},
		{name: "no warning, annotated", yaml: object("v1", "Secret", "b", ", annotations: {a: b}", "")},
		{name: "update of a secret", yaml: object("v1", "Secret", "a", "", ""), patch: `{"metadata":{"annotations":null},"stringData":{"a":"b"}}`},
		{name: "denied and warned", yaml: object("v1", "Secret", "c", "", ", type: example.com/a, data: {forbidden: YQ==}")},
		{name: "no parameters", yaml: service("")},
		{name: "atomic list", yaml: service(", labels: {a: b}")},
		{name: "unknown kind of parameters", yaml: object("v1", "ServiceAccount", "a", "", "")},
		{name: "error of an expression", yaml: object("v1", "LimitRange", "a", "", limits)},
		{name: "error of a patch", yaml: object("v1", "LimitRange", "mutated", "", limits)},
		{name: "authorizer and parameters of a mutation", yaml: template},
		{name: "reinvocation", yaml: quota},
		{name: "version of the policy", yaml: widget("v1", "a", 5)},
		{name: "version of the policy, too large", yaml: widget("v1", "b", 10)},
		{name: "different version", yaml: widget("v1beta1", "c", 5)},
		{name: "different version, too large", yaml: widget("v1beta1", "d", 11)},
		{name: "different version, exact", yaml: widget("v1beta1", "e", 7)},
		{name: "exact policy of a different version", yaml: widget("v1", "e", 7)},
		{name: "update of a different version", yaml: widget("v1beta1", "a", 5), patch: `{"spec":{"size":12}}`},
		{name: "always denied", yaml: object("v1", "Endpoints", "a", "", "")},
		{name: "excluded by the object", yaml: object("v1", "Endpoints", "b", ", labels: {free: ''}", "")},
		{name: "excluded operation", yaml: object("v1", "Endpoints", "b", "", ""), patch: `{"metadata":{"labels":{"free":null}}}`},
		{name: "delete denied", yaml: object("v1", "Endpoints", "b", "", ""), isDelete: true},
	}
}

// send returns the outcome of a write, with the parts of the object that policies change.
func (w write) send(t *testing.T, s *compare.Server) string {
	obj := s.Object(t, w.yaml)
	handle := s.Handle(t, obj)
	var result *unstructured.Object
	var err error
	switch {
	case w.isDelete:
		_, err = handle.Delete(t.Context(), obj.GetName(), nil)
	case w.subresource != "":
		result, err = handle.Subresource(w.subresource).Patch(t.Context(), obj.GetName(), types.MergePatchType, []byte(w.patch), nil)
	case w.patch != "":
		result, err = handle.Patch(t.Context(), obj.GetName(), types.MergePatchType, []byte(w.patch), nil)
	default:
		result, err = handle.Create(t.Context(), obj, nil)
	}
	if err != nil || result == nil {
		return s.Outcome("deleted", err)
	}
	shown := map[string]any{"labels": result.GetLabels(), "annotations": result.GetAnnotations(), "finalizers": result.GetFinalizers(), "data": result.Object["data"], "spec": result.Object["spec"]}
	var fields []string // the ownership of fields, without those of the policies
	for _, entry := range result.GetManagedFields() {
		fields = append(fields, entry.FieldsV1.GetRawString())
	}
	shown["fields"] = fields
	text, err := json.Marshal(shown)
	require.NoError(t, err)
	return s.Outcome(string(text), nil)
}

func TestPolicies_AsRealServer(t *testing.T) {
	policies := &cel.Policies{}
	compare.Responses(t, &apitest.Options{Rules: cel.Rules{}, Policies: policies, RBAC: true}, len(writes()), func(t *testing.T, s *compare.Server) map[string]string {
		s.Need(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: limits}, data: {maximum: "3"}}`, widgets)
		_, err := s.WaitForResources(t.Context(), "widgets.policies.example.com")
		require.NoError(t, err)
		for _, p := range mutatingPolicies {
			s.Need(t, p.yamls("MutatingAdmissionPolicy")...)
		}
		for _, p := range validatingPolicies {
			s.Need(t, p.yamls("ValidatingAdmissionPolicy")...)
		}
		awaitMarkers(t, s)
		s.Eventually(t, func() bool { // the schemas for ApplyConfigurations are read every five seconds
			obj := s.Object(t, `{apiVersion: policies.example.com/v1, kind: Widget, metadata: {name: a}, spec: {size: 1}}`)
			_, err := s.Handle(t, obj).Create(t.Context(), obj, &metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			return err == nil
		})
		outcomes := map[string]string{}
		for _, w := range writes() {
			outcomes[w.name] = w.send(t, s)
		}
		maps.Copy(outcomes, asUser(t, s))
		return outcomes
	})
}

// awaitMarkers waits until the server evaluates the last policies. It has then read the others, too.
func awaitMarkers(t *testing.T, s *compare.Server) {
	create := func(name string) (*unstructured.Object, error) {
		obj := s.Object(t, `{apiVersion: v1, kind: ReplicationController, metadata: {name: `+name+`}, spec: {selector: {a: b}, template: {metadata: {labels: {a: b}},
  spec: {containers: [{name: web, image: web}]}}}}`)
		return s.Handle(t, obj).Create(t.Context(), obj, &metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	}
	s.Eventually(t, func() bool {
		marked, err := create("marker")
		_, denied := create("denied")
		return err == nil && denied != nil && len(marked.GetFinalizers()) > 0
	})
}

// asUser creates an object as a user without rights on secrets.
func asUser(t *testing.T, s *compare.Server) map[string]string {
	s.Need(t, `{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: a}, rules: [{apiGroups: [""], resources: [podtemplates], verbs: ["*"]}]}`,
		`{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: a}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: a}, subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: jane}]}`)
	as := s.As(t, transport.Impersonation{User: "jane"})
	template := write{yaml: `{apiVersion: v1, kind: PodTemplate, metadata: {name: b}, template: {spec: {containers: [{name: web, image: web}]}}}`}
	var outcome string
	s.Eventually(t, func() bool { // the server's cache of roles
		outcome = template.send(t, as)
		return !strings.Contains(outcome, "jane")
	})
	return map[string]string{"without a right": outcome}
}
