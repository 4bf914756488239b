package oracle

func setCases() []oracleCase {
	return []oracleCase{
		{line: "set image deploy/web web=example.com/web:2", setup: webDeployment, effect: []string{"deploy/web"}, masks: statusMasks()},
		{line: "set image deploy web '*=example.com/all:2'", setup: webDeployment, effect: []string{"deploy/web"}, masks: statusMasks()},
		{line: "set image deploy web web=example.com/web:1", setup: webDeployment},
		{line: "set image deploy --all web=example.com/web:3 --dry-run=server", setup: webDeployment, effect: []string{"deploy/web"}, masks: statusMasks()},
		{line: "set env deploy/web MODE=fast", setup: webDeployment, effect: []string{"deploy/web"}, masks: statusMasks()},
		{line: "set env deploy/web -c side MODE=fast --list", setup: webDeployment},
		{line: "set env deploy/web --from=configmap/one --prefix=P_", setup: twoConfigMaps + "---" + webDeployment, effect: []string{"deploy/web"}, masks: statusMasks()},

		{line: "set env deploy/refs --list --resolve -c m*", setup: envReferences},
		{line: "set env deploy/refs --list", setup: envReferences},
		{line: "set env deploy/refs --list --resolve -c broken", setup: envReferences},
		{line: "set env deploy/refs A=1 --list --resolve -c main", setup: envReferences, effect: []string{"deploy/refs"}, masks: statusMasks()},

		{line: "set imag deploy/web web=a", setup: webDeployment, fails: true},
		{line: "set nonsense", fails: true},
		{line: "set image", fails: true},
		{line: "set image web=a", fails: true},
		{line: "set env", fails: true},
		{line: "set env MODE=fast", fails: true},
		{line: "set image deploy/web none=example.com/web:2", setup: webDeployment, fails: true},
		{line: "set image deploy/web", setup: webDeployment, fails: true},
		{line: "set image cm/one web=a", setup: twoConfigMaps, fails: true, differs: goTypes()},
		{line: "set image deploy/web web=''", setup: webDeployment, fails: true},
		{line: "set image deploy/missing web=a", fails: true},
		{line: "set image deploy/web web=a *=b", setup: webDeployment, fails: true},
		{line: "set env deploy/missing A=b", fails: true},
		{line: "set env deploy/web A=1 A=2", setup: webDeployment, effect: []string{"deploy/web"}, masks: statusMasks()},
		{line: "set env deploy/web 1A=x", setup: webDeployment, fails: true},
		{line: "set env deploy/web MODE=slow NONE-", setup: webDeployment},

		{line: "set resources deploy/web --limits=cpu=200m,memory=512Mi --requests=cpu=0.1", setup: webDeployment, effect: []string{"deploy/web"}, masks: statusMasks()},
		{line: "set resources deploy web -c 's*' --requests=cpu=1000m -o name", setup: webDeployment, effect: []string{"deploy/web"}, masks: statusMasks()},
		{line: "set resources -f - --limits=cpu=1 --local -o yaml", stdin: webDeployment, differs: localTypes()},
		{line: "set resources deploy -l app=web --limits=cpu=1 --dry-run=server", setup: webDeployment, effect: []string{"deploy/web"}, masks: statusMasks()},
		{line: "set resources deploy/web", setup: webDeployment, fails: true},
		{line: "set resources deploy/web --limits=cpu", setup: webDeployment, fails: true},
		{line: "set resources deploy/web --limits=cpu=much", setup: webDeployment, fails: true},
		{line: "set resources deploy/web -c none --limits=cpu=1", setup: webDeployment, fails: true},
		{line: "set resources deploy/web --limits=cpu=1 --requests=cpu=2", setup: webDeployment, fails: true},
		{line: "set resources deploy/missing --limits=cpu=1", fails: true},

		{line: "set selector svc web app=other,tier=front", setup: webService, effect: []string{"svc/web"}, masks: clusterIPs},
		{line: "set selector svc/web app=web", setup: webService},
		{line: "set selector -f - a=b --local -o name", stdin: webService},
		{line: "set selector svc web a=b --resource-version=1", setup: webService, fails: true},
		{line: "set selector svc web 'a in (b,c)'", setup: webService, fails: true},
		{line: "set selector cm one a=b", setup: twoConfigMaps, fails: true},
		{line: "set selector svc/web '=='", setup: webService, fails: true},
		{line: "set selector", fails: true},

		{line: "set serviceaccount deploy web robot", setup: webDeployment, effect: []string{"deploy/web"}, masks: statusMasks()},
		{line: "set sa deploy/web default", setup: webDeployment},
		{line: "set serviceaccount deploy/web robot --dry-run=client", setup: webDeployment, effect: []string{"deploy/web"}, masks: statusMasks()},
		{line: "set serviceaccount deploy/web robot --dry-run=server --local", setup: webDeployment, fails: true},
		{line: "set serviceaccount deploy/missing robot", fails: true},
		{line: "set serviceaccount", fails: true},

		{line: "set subject rolebinding b --user=bob --user=ann --group=devs --serviceaccount=$NS:robot", setup: viewBinding, effect: []string{"rolebinding/b"}},
		{line: "set subject rolebinding/b --serviceaccount=:robot", setup: viewBinding, effect: []string{"rolebinding/b"}},
		{line: "set subject rolebinding b --user=ann", setup: viewBinding},
		{line: "set subject -f - --user=new --local -o name", stdin: viewBinding},
		{line: "set subject rolebinding b", setup: viewBinding, fails: true},
		{line: "set subject rolebinding b --serviceaccount=robot", setup: viewBinding, fails: true},
		{line: "set subject cm one --user=ann", setup: twoConfigMaps, fails: true},
		{line: "set subject rolebinding missing --user=ann", fails: true},
	}
}

// localTypes explains the objects of --local.
func localTypes() *difference {
	return &difference{[]string{"stdout"}, "kubectl writes all fields of its type of the object, anyctl those that the file has"}
}

const webService = `
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80}]}
`

// clusterIPs hides allocated addresses.
var clusterIPs = []mask{{`10\.\d+\.\d+\.\d+`, "IP"}}

const viewBinding = `
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: b}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}
subjects: [{kind: User, apiGroup: rbac.authorization.k8s.io, name: ann}]
`

// envReferences has a deployment with every kind of reference; those of the container broken have no values.
const envReferences = `
apiVersion: v1
kind: ConfigMap
metadata: {name: config}
data: {color: "blue sky", size: "3"}
---
apiVersion: v1
kind: Secret
metadata: {name: secret}
stringData: {password: not-a-secret}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: refs, labels: {app: refs, tier: front}, annotations: {note: "two words"}}
spec:
  replicas: 0
  selector: {matchLabels: {app: refs}}
  template:
    metadata: {labels: {app: refs}}
    spec:
      containers:
      - name: main
        image: example.com/refs:1
        resources: {limits: {cpu: 1500m, memory: 64Mi}, requests: {cpu: 250m}}
        env:
        - {name: PLAIN, value: plain}
        - {name: COLOR, valueFrom: {configMapKeyRef: {name: config, key: color}}}
        - {name: PASSWORD, valueFrom: {secretKeyRef: {name: secret, key: password}}}
        - {name: NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
        - {name: NAMESPACE, valueFrom: {fieldRef: {fieldPath: metadata.namespace}}}
        - {name: LABEL, valueFrom: {fieldRef: {fieldPath: "metadata.labels['tier']"}}}
        - {name: CPU, valueFrom: {resourceFieldRef: {resource: limits.cpu}}}
        - {name: MILLI, valueFrom: {resourceFieldRef: {resource: limits.cpu, divisor: 1m}}}
        - {name: MEMORY, valueFrom: {resourceFieldRef: {resource: limits.memory, divisor: 1Mi}}}
        - {name: REQUEST, valueFrom: {resourceFieldRef: {resource: requests.cpu}}}
        - {name: NO_LIMIT, valueFrom: {resourceFieldRef: {resource: requests.memory}}}
      - name: broken
        image: example.com/refs:1
        env:
        - {name: FOUND, valueFrom: {configMapKeyRef: {name: config, key: size}}}
        - {name: NO_MAP, valueFrom: {configMapKeyRef: {name: missing, key: color}}}
        - {name: NO_MAP_TWO, valueFrom: {configMapKeyRef: {name: missing, key: color}}}
        - {name: NO_KEY, valueFrom: {configMapKeyRef: {name: config, key: missing}}}
        - {name: NO_SECRET, valueFrom: {secretKeyRef: {name: missing, key: a}}}
        - {name: NO_SECRET_KEY, valueFrom: {secretKeyRef: {name: secret, key: a}}}
        - {name: NODE, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}
`
