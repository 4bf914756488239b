package admission_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/apitest"
	"github.com/anykind/anykind/apitest/internal/testing/compare"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/client"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured"
)

// pod returns a pod with a container of these resources and further fields of its spec.
func pod(name, resources, fields string) string {
	if fields != "" {
		fields = ", " + fields
	}
	return fmt.Sprintf(`{apiVersion: v1, kind: Pod, metadata: {name: %s}, spec: {containers: [{name: c, image: i, resources: %s}]%s}}`, name, resources, fields)
}

// shownPod returns the parts of a pod that the plugins change.
func shownPod(obj *unstructured.Object) any {
	if obj == nil {
		return nil
	}
	spec, _ := obj.Object["spec"].(map[string]any)
	var resources []any
	for _, name := range []string{"initContainers", "containers"} {
		containers, _ := spec[name].([]any)
		for _, container := range containers {
			resources = append(resources, container.(map[string]any)["resources"])
		}
	}
	return []any{
		obj.GetAnnotations(), obj.GetLabels(), resources, spec["priority"], spec["priorityClassName"], spec["preemptionPolicy"],
		spec["overhead"], spec["nodeSelector"], spec["tolerations"],
	}
}

func claim(name, class, size string) string {
	return fmt.Sprintf(`{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: %s}, spec: {accessModes: [ReadWriteOnce]%s, resources: {requests: {storage: %s}}}}`, name, class, size)
}

func TestPlugins_LimitRangesAsOnServer(t *testing.T) {
	compare.Responses(t, nil, 20, func(t *testing.T, s *compare.Server) map[string]string {
		s.Need(t, `{apiVersion: v1, kind: LimitRange, metadata: {name: limits}, spec: {limits: [
			{type: Container, default: {cpu: 200m, memory: 64Mi}, defaultRequest: {cpu: 100m}, max: {memory: 1Gi}, min: {cpu: 50m}, maxLimitRequestRatio: {cpu: 4}},
			{type: Pod, max: {cpu: "2"}},
			{type: PersistentVolumeClaim, min: {storage: 1Gi}, max: {storage: 5Gi}}]}}`)
		s.Eventually(t, func() bool {
			created, err := s.Handle(t, s.Object(t, pod("x", "{}", ""))).Create(t.Context(), s.Object(t, pod("x", "{}", "")), &metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			return err == nil && len(created.GetAnnotations()) > 0
		})
		all := map[string]string{}
		for name, text := range map[string]string{
			"nothing":    pod("nothing", "{}", ""),
			"own":        pod("own", "{requests: {cpu: 150m, memory: 10Mi}, limits: {cpu: 300m, memory: 20Mi}}", ""),
			"limits":     pod("limits", "{limits: {cpu: 150m}}", ""),
			"init":       pod("init", "{}", "initContainers: [{name: a, image: i}, {name: b, image: i, restartPolicy: Always, resources: {requests: {cpu: 60m}}}]"),
			"small":      pod("small", "{requests: {cpu: 10m}}", ""),
			"small2":     pod("small2", "{requests: {cpu: 10m}, limits: {cpu: 20m}}", ""),
			"large":      pod("large", "{limits: {memory: 2Gi}}", ""),
			"request":    pod("request", "{requests: {memory: 2Gi}, limits: {memory: 2Gi}}", ""),
			"ratio":      pod("ratio", "{requests: {cpu: 50m}, limits: {cpu: 500m}}", ""),
			"pod":        pod("pod", "{requests: {cpu: 3}, limits: {cpu: 3}}", ""),
			"init-pod":   pod("init-pod", "{}", `initContainers: [{name: a, image: i, resources: {limits: {cpu: 1}}}, {name: b, image: i, restartPolicy: Always, resources: {limits: {cpu: 1}}}, {name: d, image: i, resources: {limits: {cpu: 1500m}}}]`),
			"sidecars":   pod("sidecars", "{limits: {cpu: 1}}", `initContainers: [{name: a, image: i, resources: {limits: {cpu: 2}}}, {name: b, image: i, restartPolicy: Always, resources: {limits: {cpu: 1}}}]`),
			"fitting":    claim("fitting", "", "2Gi"),
			"tiny":       claim("tiny", "", "1Mi"),
			"huge":       claim("huge", "", "6Gi"),
			"pod level":  pod("pod-level", "{}", "resources: {limits: {cpu: 3}}"),
			"deployment": `{apiVersion: apps/v1, kind: Deployment, metadata: {name: d}, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}}`,
		} {
			created, err := s.Create(t, text)
			all[name] = s.Outcome(shownPod(created), err)
		}
		pods := s.Handle(t, s.Object(t, pod("nothing", "{}", "")))
		for name, patch := range map[string]string{
			"resize":  `{"spec":{"containers":[{"name":"c","resources":{"limits":{"cpu":"250m"}}}]}}`,
			"grow":    `{"spec":{"containers":[{"name":"c","resources":{"limits":{"cpu":"3"},"requests":{"cpu":"2"}}}]}}`,
			"shrink":  `{"spec":{"containers":[{"name":"c","resources":{"requests":{"cpu":"10m"}}}]}}`,
			"stretch": `{"spec":{"containers":[{"name":"c","resources":{"requests":{"cpu":"50m"},"limits":{"cpu":"1"}}}]}}`,
		} {
			changed, err := pods.Subresource("resize").Patch(t.Context(), "nothing", types.StrategicMergePatchType, []byte(patch), &metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
			all[name] = s.Outcome(shownPod(changed), err)
		}
		return all
	})
}

func TestPlugins_PrioritiesAsOnServer(t *testing.T) {
	compare.Responses(t, nil, 12, func(t *testing.T, s *compare.Server) map[string]string {
		class := `{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: %s}, value: %d, globalDefault: %t, preemptionPolicy: %s}`
		s.Need(t, fmt.Sprintf(class, "NAMESPACE-high", 1000, false, "Never"), fmt.Sprintf(class, "NAMESPACE-default", 7, true, "PreemptLowerPriority"))
		s.Eventually(t, func() bool {
			object := s.Object(t, pod("x", "{}", "priorityClassName: NAMESPACE-high"))
			_, err := s.Handle(t, object).Create(t.Context(), object, &metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			object = s.Object(t, pod("x", "{}", ""))
			created, defaulted := s.Handle(t, object).Create(t.Context(), object, &metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			return err == nil && defaulted == nil && created.Object["spec"].(map[string]any)["priorityClassName"] != nil
		})
		all := map[string]string{}
		for name, fields := range map[string]string{
			"default": "", "high": "priorityClassName: NAMESPACE-high", "unknown": "priorityClassName: NAMESPACE-unknown", "system": "priorityClassName: system-node-critical",
			"number": "priority: 3", "right": "priority: 7", "wrong": "priorityClassName: NAMESPACE-high, priority: 7", "policy": "preemptionPolicy: Never",
			"policy-high": "preemptionPolicy: Never, priorityClassName: NAMESPACE-high", "zero": "priority: 0",
		} {
			created, err := s.Create(t, pod(name, "{}", fields))
			all[name] = s.Outcome(shownPod(created), err)
		}
		for name, text := range map[string]string{"second default": fmt.Sprintf(class, "NAMESPACE-second", 8, true, "Never"), "another": fmt.Sprintf(class, "NAMESPACE-third", 9, false, "Never")} {
			_, err := s.Create(t, text)
			all[name] = s.Outcome(nil, err)
		}
		pods := s.Handle(t, s.Object(t, pod("high", "{}", "")))
		changed, err := pods.Patch(t.Context(), "high", types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}},"spec":{"priority":null}}`), nil)
		all["update"] = s.Outcome(shownPod(changed), err)
		classes := s.Handle(t, s.Object(t, fmt.Sprintf(class, "x", 1, false, "Never")))
		_, err = classes.Patch(t.Context(), s.Namespace+"-high", types.MergePatchType, []byte(`{"globalDefault":true}`), nil)
		all["another default"] = s.Outcome(nil, err)
		return all
	})
}

func TestPlugins_ClassesAsOnServer(t *testing.T) {
	compare.Responses(t, nil, 20, func(t *testing.T, s *compare.Server) map[string]string {
		s.Need(t,
			`{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: NAMESPACE-default, annotations: {storageclass.kubernetes.io/is-default-class: "true"}}, provisioner: example.com/a, allowVolumeExpansion: true}`,
			`{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: NAMESPACE-fixed}, provisioner: example.com/a}`,
			`{apiVersion: networking.k8s.io/v1, kind: IngressClass, metadata: {name: NAMESPACE-default, annotations: {ingressclass.kubernetes.io/is-default-class: "true"}}, spec: {controller: example.com/a}}`,
			`{apiVersion: node.k8s.io/v1, kind: RuntimeClass, metadata: {name: NAMESPACE-heavy}, handler: a, overhead: {podFixed: {cpu: 250m}}, scheduling: {nodeSelector: {kind: heavy}, tolerations: [{key: heavy, operator: Exists}, {key: node.kubernetes.io/not-ready, operator: Exists}]}}`,
			`{apiVersion: node.k8s.io/v1, kind: RuntimeClass, metadata: {name: NAMESPACE-light}, handler: a}`,
			`{apiVersion: v1, kind: Node, metadata: {name: NAMESPACE-node, labels: {topology.kubernetes.io/zone: z, topology.kubernetes.io/region: r, other: o}}}`,
		)
		ingress := `{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: %s%s}, spec: {%s defaultBackend: {service: {name: s, port: {number: 80}}}}}`
		s.Eventually(t, func() bool {
			for _, text := range []string{claim("x", "", "1Gi"), fmt.Sprintf(ingress, "x", "", "")} {
				object := s.Object(t, text)
				created, err := s.Handle(t, object).Create(t.Context(), object, &metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
				if err != nil || !strings.Contains(fmt.Sprint(created.Object["spec"]), s.Namespace+"-default") {
					return false
				}
			}
			return true
		})
		all := map[string]string{}
		for name, text := range map[string]string{
			"claim": claim("claim", "", "1Gi"), "claim-none": claim("claim-none", `, storageClassName: ""`, "1Gi"), "claim-fixed": claim("claim-fixed", `, storageClassName: NAMESPACE-fixed`, "1Gi"),
			"ingress": fmt.Sprintf(ingress, "ingress", "", ""), "ingress-own": fmt.Sprintf(ingress, "ingress-own", "", "ingressClassName: other,"),
			"ingress-annotated": fmt.Sprintf(ingress, "ingress-annotated", `, annotations: {kubernetes.io/ingress.class: a}`, ""),
		} {
			created, err := s.Create(t, text)
			if err == nil {
				delete(created.Object["spec"].(map[string]any), "resources")
				all[name] = s.Outcome(created.Object["spec"], nil)
				continue
			}
			all[name] = s.Outcome(nil, err)
		}
		for name, fields := range map[string]string{
			"heavy": "runtimeClassName: NAMESPACE-heavy", "light": "runtimeClassName: NAMESPACE-light", "missing": "runtimeClassName: NAMESPACE-missing",
			"selector": "runtimeClassName: NAMESPACE-heavy, nodeSelector: {kind: heavy, a: b}", "conflict": "runtimeClassName: NAMESPACE-heavy, nodeSelector: {kind: light}",
			"overhead": "overhead: {cpu: 250m}", "same": "runtimeClassName: NAMESPACE-heavy, overhead: {cpu: 0.25}", "other": "runtimeClassName: NAMESPACE-heavy, overhead: {cpu: 1}",
			"tolerant": `runtimeClassName: NAMESPACE-heavy, tolerations: [{operator: Exists}]`, "equal": `runtimeClassName: NAMESPACE-heavy, tolerations: [{key: heavy, operator: Equal, value: x}, {key: other, effect: NoExecute, tolerationSeconds: 3}]`,
			"on-node": "nodeName: NAMESPACE-node", "on-other": "nodeName: NAMESPACE-other",
		} {
			created, err := s.Create(t, pod(name, "{}", fields))
			all[name] = s.Outcome(shownPod(created), err)
		}
		bind := `{apiVersion: v1, kind: Binding, metadata: {name: light}, target: {kind: Node, name: NAMESPACE-node}}`
		pods := s.Handle(t, s.Object(t, pod("light", "{}", "")))
		_, err := pods.Named("light").Subresource("binding").Create(t.Context(), s.Object(t, bind), nil)
		all["bind"] = s.Outcome(nil, err)
		bound, err := pods.Get(t.Context(), "light", nil)
		all["bound"] = s.Outcome(shownPod(bound), err)
		claims := s.Handle(t, s.Object(t, claim("claim", "", "1Gi")))
		for _, name := range []string{"claim", "claim-fixed", "claim-none"} {
			grow := []byte(`{"spec":{"resources":{"requests":{"storage":"2Gi"}}}}`)
			_, err = claims.Patch(t.Context(), name, types.MergePatchType, grow, nil)
			all["grow unbound "+name], _, _ = strings.Cut(s.Outcome(nil, err), " @@") // before what has changed
			_, err = claims.Subresource("status").Patch(t.Context(), name, types.MergePatchType, []byte(`{"status":{"phase":"Bound"}}`), nil)
			require.NoError(t, err)
			_, err = claims.Patch(t.Context(), name, types.MergePatchType, []byte(`{"spec":{"volumeName":"v"}}`), nil)
			require.NoError(t, err)
			_, err = claims.Patch(t.Context(), name, types.MergePatchType, grow, nil)
			all["grow "+name] = s.Outcome(nil, err)
		}
		return all
	})
}

// newCertificate returns a certificate signing request of an organization and a certificate, both as PEM in base64.
func newCertificate(t *testing.T, organization string) (request, certificate string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	subject := pkix.Name{CommonName: "bob", Organization: []string{organization}}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: subject}, key)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: subject, NotAfter: time.Now().Add(time.Hour)}
	signed, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	encode := func(kind string, der []byte) string {
		return base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
	}
	return encode("CERTIFICATE REQUEST", der), encode("CERTIFICATE", signed)
}

func TestPlugins_CertificatesAsOnServer(t *testing.T) {
	compare.Responses(t, &apitest.Options{RBAC: true}, 10, func(t *testing.T, s *compare.Server) map[string]string {
		role := `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: NAMESPACE-%s}, rules: [{apiGroups: [certificates.k8s.io], resources: [certificatesigningrequests, certificatesigningrequests/approval, certificatesigningrequests/status], verbs: ["*"]}%s]}`
		binding := `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: NAMESPACE-%[1]s}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: NAMESPACE-%[1]s}, subjects: [{kind: User, name: NAMESPACE-%[1]s}]}`
		for user, rules := range map[string]string{
			"none": "", "one": `, {apiGroups: [certificates.k8s.io], resources: [signers], resourceNames: [example.com/a], verbs: [approve, sign]}`,
			"domain": `, {apiGroups: [certificates.k8s.io], resources: [signers], resourceNames: ["example.com/*"], verbs: [approve, sign]}`,
		} {
			s.Need(t, fmt.Sprintf(role, user, rules), fmt.Sprintf(binding, user))
		}
		all := map[string]string{}
		request := `{apiVersion: certificates.k8s.io/v1, kind: CertificateSigningRequest, metadata: {name: NAMESPACE-%s}, spec: {request: %s, signerName: %s, usages: [client auth]}}`
		for name, organization := range map[string]string{"masters": "system:masters", "staff": "staff"} {
			pem, _ := newCertificate(t, organization)
			_, err := s.Create(t, fmt.Sprintf(request, name, pem, "kubernetes.io/kube-apiserver-client"))
			all[name] = s.Outcome(nil, err)
		}
		for _, user := range []string{"none", "one", "domain"} {
			pem, signed := newCertificate(t, "staff")
			s.Need(t, fmt.Sprintf(request, user, pem, "example.com/a"))
			as := s.As(t, transport.Impersonation{User: s.Namespace + "-" + user})
			requests := client.Resource(t, as.Client, "certificatesigningrequests")
			name := s.Namespace + "-" + user
			as.Eventually(t, func() bool {
				_, err := requests.Get(t.Context(), name, nil)
				return err == nil
			})
			approved := `{"status":{"conditions":[{"type":"Approved","status":"True","reason":"test"}]}}`
			_, err := requests.Subresource("approval").Patch(t.Context(), name, types.MergePatchType, []byte(approved), nil)
			all[user+" approves"] = s.Outcome(nil, err)
			_, err = requests.Subresource("status").Patch(t.Context(), name, types.MergePatchType, []byte(`{"status":{"certificate":"`+signed+`"}}`), nil)
			all[user+" signs"] = s.Outcome(nil, err)
			_, err = requests.Patch(t.Context(), name, types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`), nil)
			all[user+" labels"] = s.Outcome(nil, err)
		}
		return all
	})
}

func TestPlugins_WarningsOfMissingPlugins(t *testing.T) {
	quota := `{apiVersion: v1, kind: ResourceQuota, metadata: {name: q}, spec: {hard: {%s}}}`
	configMap := `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}`
	deployment := `{apiVersion: apps/v1, kind: Deployment, metadata: {name: d}, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}}`
	level := `{apiVersion: v1, kind: Namespace, metadata: {name: level, labels: {pod-security.kubernetes.io/%s}}}`
	const ofQuota, ofLevel = `the resource quotas of namespace "%s"`, `the pod security level of namespace "%s"`
	for name, tc := range map[string]struct{ setup, text, want string }{
		"no quota":        {"", pod("a", "{}", ""), ""},
		"counted":         {fmt.Sprintf(quota, "pods: 1"), pod("a", "{}", ""), ofQuota},
		"sizes":           {fmt.Sprintf(quota, "requests.cpu: 1"), pod("a", "{}", ""), ofQuota},
		"other kinds":     {fmt.Sprintf(quota, "pods: 1, requests.storage: 1Gi, count/deployments.apps: 1"), configMap, ""},
		"generic":         {fmt.Sprintf(quota, "count/configmaps: 1"), configMap, ofQuota},
		"storage":         {fmt.Sprintf(quota, "requests.storage: 1Gi"), claim("a", "", "1Gi"), ofQuota},
		"storage of pod":  {fmt.Sprintf(quota, "requests.storage: 1Gi"), pod("a", "{}", ""), ""},
		"storage class":   {fmt.Sprintf(quota, "fast.storageclass.storage.k8s.io/requests.storage: 1Gi"), claim("a", "", "1Gi"), ofQuota},
		"load balancers":  {fmt.Sprintf(quota, "services.loadbalancers: 1"), `{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {ports: [{port: 80}]}}`, ofQuota},
		"service account": {`{apiVersion: v1, kind: ServiceAccount, metadata: {name: a}}`, pod("a", "{}", ""), ""},
		"default account": {`{apiVersion: v1, kind: ServiceAccount, metadata: {name: default}}`, pod("a", "{}", ""), "the pod's service account, whose token is not mounted"},
		"node":            {"", `{apiVersion: v1, kind: Node, metadata: {name: node}}`, "the node gets no taint node.kubernetes.io/not-ready"},
		"enforced":        {fmt.Sprintf(level, "enforce: restricted"), pod("a", "{}", ""), ofLevel},
		"enforced later":  {fmt.Sprintf(level, "enforce: restricted"), deployment, ""},
		"warned":          {fmt.Sprintf(level, "warn: baseline"), deployment, ofLevel},
		"privileged":      {fmt.Sprintf(level, "enforce: privileged"), pod("a", "{}", ""), ""},
	} {
		t.Run(name, func(t *testing.T) {
			var warnings []string
			cfg := apitest.NewServer(t, nil).Config()
			cfg.OnWarning = func(_ context.Context, text string) { warnings = append(warnings, text) }
			c, err := dynamic.Connect(t.Context(), cfg)
			require.NoError(t, err)
			defer c.Close()
			s := &compare.Server{Client: c, Namespace: "default"}
			create := func(text string) {
				obj := s.Object(t, text)
				if obj.GetKind() == "Namespace" {
					s.Namespace = obj.GetName()
				}
				_, err := s.Handle(t, obj).Create(t.Context(), obj, nil)
				require.NoError(t, err)
			}
			if tc.setup != "" {
				create(tc.setup)
				warnings = nil
			}
			create(tc.text)
			if tc.want == "" {
				assert.Empty(t, warnings)
				return
			}
			assert.Equal(t, []string{"apitest: not validated: " + strings.ReplaceAll(tc.want, "%s", s.Namespace)}, warnings)
		})
	}
}
