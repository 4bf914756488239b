package difftest

// builtinKinds returns the built-in kinds with valid bodies, and patches to invalid or unusual bodies.
func builtinKinds() []*kind {
	const (
		podSpec  = `{"containers":[{"name":"app","image":"nginx:1.27"}]}`
		labels   = `"matchLabels":{"app":"web"}`
		template = `{"metadata":{"labels":{"app":"web"}},"spec":` + podSpec + `}`
	)
	return []*kind{
		{
			version: "v1", plural: "configmaps", name: "ConfigMap", namespaced: true,
			bodies: []string{`{"data":{"a":"1","b":"two"}}`, `{}`, `{"data":{"key.with-dots":"x"},"binaryData":{"bin":"aGVsbG8="}}`, `{"immutable":true,"data":{"a":"fixed"}}`},
			broken: []string{`{"data":{"bad key!":"x"}}`, `{"data":"text"}`, `{"binaryData":{"a":"not base64"}}`, `{"unknownField":1}`, `{"data":{"a":null}}`, `{"data":{"a":5}}`},
		},
		{
			version: "v1", plural: "secrets", name: "Secret", namespaced: true,
			bodies: []string{`{"data":{"password":"aGVsbG8="}}`, `{"stringData":{"user":"admin"}}`, `{"type":"kubernetes.io/basic-auth","stringData":{"username":"u","password":"p"}}`, `{"type":"example.org/own","data":{}}`},
			broken: []string{`{"type":"kubernetes.io/tls"}`, `{"data":{"a":"%%%"}}`, `{"type":"kubernetes.io/dockerconfigjson","data":{".dockerconfigjson":"aGVsbG8="}}`, `{"extra":true}`},
		},
		{
			version: "v1", plural: "services", name: "Service", namespaced: true, status: true,
			bodies: []string{
				`{"spec":{"selector":{"app":"web"},"ports":[{"port":80}]}}`,
				`{"spec":{"type":"NodePort","selector":{"app":"web"},"ports":[{"name":"http","port":80,"targetPort":"http"},{"name":"dns","port":53,"protocol":"UDP"}]}}`,
				`{"spec":{"clusterIP":"None","ports":[{"port":5432}]}}`,
				`{"spec":{"type":"ExternalName","externalName":"example.org"}}`,
				`{"spec":{"type":"LoadBalancer","ports":[{"port":443}]}}`,
			},
			broken: []string{`{"spec":{"ports":[]}}`, `{"spec":{"ports":[{"port":0}]}}`, `{"spec":{"ports":[{"port":80},{"port":81}]}}`, `{"spec":{"type":"Wrong"}}`, `{"spec":{"sessionAffinity":"ClientIP"}}`},
		},
		{
			version: "v1", plural: "pods", name: "Pod", namespaced: true, status: true,
			bodies: []string{
				`{"spec":` + podSpec + `}`,
				`{"spec":{"restartPolicy":"Never","terminationGracePeriodSeconds":0,"containers":[{"name":"app","image":"busybox","command":["sleep","1"],"env":[{"name":"A","value":"1"}],"ports":[{"containerPort":80}],"resources":{"limits":{"cpu":"1000m","memory":"1Gi"}}}]}}`,
				`{"spec":{"initContainers":[{"name":"init","image":"busybox:latest"}],"containers":[{"name":"app","image":"nginx","readinessProbe":{"httpGet":{"path":"/","port":80}},"livenessProbe":{"tcpSocket":{"port":80}}}],"volumes":[{"name":"data","emptyDir":{}},{"name":"cm","configMap":{"name":"x"}}]}}`,
			},
			broken: []string{`{"spec":{"containers":[]}}`, `{"spec":{"containers":[{"name":"Bad_Name","image":"x"}]}}`, `{"spec":{"restartPolicy":"Sometimes"}}`, `{"spec":{"containers":[{"name":"app"}]}}`, `{"spec":{"unknownField":1}}`, `{"spec":{"nodeName":"other"}}`},
		},
		{
			version: "v1", plural: "serviceaccounts", name: "ServiceAccount", namespaced: true,
			bodies: []string{`{}`, `{"automountServiceAccountToken":false}`, `{"imagePullSecrets":[{"name":"x"}]}`},
			broken: []string{`{"secrets":"x"}`, `{"unknownField":1}`},
		},
		{
			version: "v1", plural: "persistentvolumeclaims", name: "PersistentVolumeClaim", namespaced: true, status: true,
			bodies: []string{`{"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}}`},
			broken: []string{`{"spec":{"accessModes":[]}}`, `{"spec":{"resources":null}}`},
		},
		{
			version: "v1", plural: "namespaces", name: "Namespace", status: true,
			bodies: []string{`{}`},
			broken: []string{`{"unknownField":1}`},
		},
		{
			group: "apps", version: "v1", plural: "deployments", name: "Deployment", namespaced: true, status: true, scale: true,
			bodies: []string{
				`{"spec":{"selector":{` + labels + `},"template":` + template + `}}`,
				`{"spec":{"replicas":3,"strategy":{"type":"Recreate"},"selector":{` + labels + `},"template":` + template + `}}`,
				`{"spec":{"replicas":2,"strategy":{"rollingUpdate":{"maxSurge":"50%"}},"selector":{` + labels + `},"template":` + template + `}}`,
			},
			broken: []string{`{"spec":{"replicas":-1}}`, `{"spec":{"selector":{"matchLabels":{"app":"other"}}}}`, `{"spec":{"template":null}}`, `{"spec":{"replicas":"three"}}`, `{"spec":{"selector":null}}`},
		},
		{
			group: "apps", version: "v1", plural: "replicasets", name: "ReplicaSet", namespaced: true, status: true, scale: true,
			bodies: []string{`{"spec":{"replicas":1,"selector":{` + labels + `},"template":` + template + `}}`},
			broken: []string{`{"spec":{"replicas":-1}}`, `{"spec":{"selector":{}}}`},
		},
		{
			group: "apps", version: "v1", plural: "statefulsets", name: "StatefulSet", namespaced: true, status: true, scale: true,
			bodies: []string{`{"spec":{"serviceName":"web","selector":{` + labels + `},"template":` + template + `}}`},
			broken: []string{`{"spec":{"replicas":-1}}`, `{"spec":{"serviceName":"other"}}`},
		},
		{
			group: "apps", version: "v1", plural: "daemonsets", name: "DaemonSet", namespaced: true, status: true,
			bodies: []string{`{"spec":{"selector":{` + labels + `},"template":` + template + `}}`},
			broken: []string{`{"spec":{"minReadySeconds":-1}}`},
		},
		{
			group: "batch", version: "v1", plural: "jobs", name: "Job", namespaced: true, status: true,
			bodies: []string{`{"spec":{"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"app","image":"busybox"}]}}}}`},
			broken: []string{`{"spec":{"parallelism":-1}}`, `{"spec":{"template":{"spec":{"restartPolicy":"Always"}}}}`},
		},
		{
			group: "batch", version: "v1", plural: "cronjobs", name: "CronJob", namespaced: true, status: true,
			bodies: []string{`{"spec":{"schedule":"*/5 * * * *","jobTemplate":{"spec":{"template":{"spec":{"restartPolicy":"OnFailure","containers":[{"name":"app","image":"busybox"}]}}}}}}`},
			broken: []string{`{"spec":{"failedJobsHistoryLimit":-1}}`, `{"spec":{"concurrencyPolicy":"x"}}`},
		},
		{
			group: "coordination.k8s.io", version: "v1", plural: "leases", name: "Lease", namespaced: true,
			bodies: []string{`{"spec":{"holderIdentity":"me","leaseDurationSeconds":15,"renewTime":"2024-01-02T03:04:05.000000Z"}}`, `{}`},
			broken: []string{`{"spec":{"leaseDurationSeconds":0}}`, `{"spec":{"renewTime":"yesterday"}}`},
		},
		{
			group: "rbac.authorization.k8s.io", version: "v1", plural: "roles", name: "Role", namespaced: true,
			bodies: []string{`{"rules":[{"apiGroups":[""],"resources":["pods"],"verbs":["get","list"]}]}`, `{}`},
			broken: []string{`{"rules":[{"apiGroups":[""],"resources":["pods"]}]}`, `{"rules":[{"nonResourceURLs":["/x"],"verbs":["get"]}]}`},
		},
		{
			group: "rbac.authorization.k8s.io", version: "v1", plural: "rolebindings", name: "RoleBinding", namespaced: true,
			bodies: []string{`{"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"x"},"subjects":[{"kind":"User","name":"bob"},{"kind":"ServiceAccount","name":"sa","namespace":"default"}]}`},
			broken: []string{`{"roleRef":null}`, `{"subjects":[{"kind":"x","name":"y"}]}`, `{"roleRef":{"name":"other"}}`},
		},
		{
			group: "rbac.authorization.k8s.io", version: "v1", plural: "clusterroles", name: "ClusterRole",
			bodies: []string{`{"rules":[{"nonResourceURLs":["/healthz"],"verbs":["get"]}]}`, `{"rules":[{"apiGroups":["*"],"resources":["*"],"verbs":["*"]}]}`},
			broken: []string{`{"rules":[{"verbs":["get"]}]}`},
		},
		{
			group: "policy", version: "v1", plural: "poddisruptionbudgets", name: "PodDisruptionBudget", namespaced: true, status: true,
			bodies: []string{`{"spec":{"minAvailable":1,"selector":{` + labels + `}}}`, `{"spec":{"maxUnavailable":"30%"}}`},
			broken: []string{`{"spec":{"minAvailable":1,"maxUnavailable":1}}`, `{"spec":{"minAvailable":-1}}`},
		},
		{
			group: "networking.k8s.io", version: "v1", plural: "networkpolicies", name: "NetworkPolicy", namespaced: true,
			bodies: []string{`{"spec":{"podSelector":{}}}`, `{"spec":{"podSelector":{` + labels + `},"ingress":[{"from":[{"ipBlock":{"cidr":"10.0.0.0/8"}}]}],"policyTypes":["Ingress"]}}`},
			broken: []string{`{"spec":{"policyTypes":["x"]}}`},
		},
		{
			group: "networking.k8s.io", version: "v1", plural: "ingresses", name: "Ingress", namespaced: true, status: true,
			bodies: []string{`{"spec":{"rules":[{"host":"example.org","http":{"paths":[{"path":"/","pathType":"Prefix","backend":{"service":{"name":"web","port":{"number":80}}}}]}}]}}`},
			broken: []string{`{"spec":{"rules":[{"http":{"paths":[{"path":"x","pathType":"Exact","backend":{"service":{"name":"web","port":{"number":80}}}}]}}]}}`, `{"spec":{"rules":[]}}`},
		},
		{
			group: "autoscaling", version: "v2", plural: "horizontalpodautoscalers", name: "HorizontalPodAutoscaler", namespaced: true, status: true,
			bodies: []string{`{"spec":{"maxReplicas":3,"scaleTargetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"web"}}}`},
			broken: []string{`{"spec":{"maxReplicas":0}}`}, versions: []string{"v1"},
		},
	}
}
