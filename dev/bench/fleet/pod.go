package main

import (
	"crypto/sha256"
	"fmt"
	"time"
)

// podTemplate is a running pod of a Deployment as an API server returns it: the pods of package compare with the defaults, tolerations
// and managedFields of the server. Each pod has its own name, UIDs, addresses, times, container ID and resourceVersion.
const podTemplate = `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web-7c5d%06[2]d-%05[1]x","generateName":"web-7c5d%06[2]d-","namespace":"ns-%[3]d",` +
	`"uid":"%[4]s","resourceVersion":"%[5]d","generation":1,"creationTimestamp":"%[6]s",` +
	`"labels":{"app":"web-%[2]d","pod-template-hash":"7c5d%06[2]d"},"annotations":{"example.com/sent":"%[7]d"},` +
	`"ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"web-7c5d%06[2]d","uid":"d9607e19-f88f-11e6-a518-%012[2]d","controller":true,"blockOwnerDeletion":true}],` +
	`"managedFields":[{"manager":"kube-controller-manager","operation":"Update","apiVersion":"v1","time":"%[6]s","fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:generateName":{},` +
	`"f:labels":{".":{},"f:app":{},"f:pod-template-hash":{}},"f:ownerReferences":{".":{},"k:{\"uid\":\"d9607e19-f88f-11e6-a518-%012[2]d\"}":{}}},` +
	`"f:spec":{"f:containers":{"k:{\"name\":\"web\"}":{".":{},"f:env":{".":{},"k:{\"name\":\"POD_IP\"}":{".":{},"f:name":{},"f:valueFrom":{".":{},"f:fieldRef":{}}},` +
	`"k:{\"name\":\"WORKLOAD\"}":{".":{},"f:name":{},"f:value":{}}},"f:image":{},"f:imagePullPolicy":{},"f:name":{},"f:ports":{".":{},"k:{\"containerPort\":8080,\"protocol\":\"TCP\"}":{".":{},"f:containerPort":{},"f:protocol":{}}},` +
	`"f:resources":{".":{},"f:limits":{".":{},"f:memory":{}},"f:requests":{".":{},"f:cpu":{},"f:memory":{}}},"f:terminationMessagePath":{},"f:terminationMessagePolicy":{}}},` +
	`"f:dnsPolicy":{},"f:enableServiceLinks":{},"f:restartPolicy":{},"f:schedulerName":{},"f:securityContext":{},"f:terminationGracePeriodSeconds":{}}}},` +
	`{"manager":"kubelet","operation":"Update","apiVersion":"v1","time":"%[8]s","fieldsType":"FieldsV1","fieldsV1":{"f:status":{"f:conditions":{"k:{\"type\":\"ContainersReady\"}":{".":{},"f:lastProbeTime":{},"f:lastTransitionTime":{},"f:status":{},"f:type":{}},` +
	`"k:{\"type\":\"Initialized\"}":{".":{},"f:lastProbeTime":{},"f:lastTransitionTime":{},"f:status":{},"f:type":{}},"k:{\"type\":\"Ready\"}":{".":{},"f:lastProbeTime":{},"f:lastTransitionTime":{},"f:status":{},"f:type":{}}},` +
	`"f:containerStatuses":{},"f:hostIP":{},"f:hostIPs":{},"f:phase":{},"f:podIP":{},"f:podIPs":{".":{},"k:{\"ip\":\"%[9]s\"}":{".":{},"f:ip":{}}},"f:startTime":{}}},"subresource":"status"}]},` +
	`"spec":{"volumes":[{"name":"kube-api-access-%05[1]x","projected":{"sources":[{"serviceAccountToken":{"expirationSeconds":3607,"path":"token"}},{"configMap":{"name":"kube-root-ca.crt","items":[{"key":"ca.crt","path":"ca.crt"}]}},` +
	`{"downwardAPI":{"items":[{"path":"namespace","fieldRef":{"apiVersion":"v1","fieldPath":"metadata.namespace"}}]}}],"defaultMode":420}}],` +
	`"containers":[{"name":"web","image":"registry.example.com/shop/web:1.27.%[2]d","ports":[{"containerPort":8080,"protocol":"TCP"}],"env":[{"name":"WORKLOAD","value":"%[2]d"},{"name":"POD_IP","valueFrom":{"fieldRef":{"apiVersion":"v1","fieldPath":"status.podIP"}}}],` +
	`"resources":{"limits":{"memory":"128Mi"},"requests":{"cpu":"50m","memory":"64Mi"}},"volumeMounts":[{"name":"kube-api-access-%05[1]x","readOnly":true,"mountPath":"/var/run/secrets/kubernetes.io/serviceaccount"}],` +
	`"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File","imagePullPolicy":"IfNotPresent"}],"restartPolicy":"Always","terminationGracePeriodSeconds":30,"dnsPolicy":"ClusterFirst",` +
	`"serviceAccountName":"default","serviceAccount":"default","nodeName":"node-%[10]d","securityContext":{},"schedulerName":"default-scheduler",` +
	`"tolerations":[{"key":"node.kubernetes.io/not-ready","operator":"Exists","effect":"NoExecute","tolerationSeconds":300},{"key":"node.kubernetes.io/unreachable","operator":"Exists","effect":"NoExecute","tolerationSeconds":300}],` +
	`"priority":0,"enableServiceLinks":true,"preemptionPolicy":"PreemptLowerPriority"},` +
	`"status":{"observedGeneration":1,"phase":"Running","conditions":[{"type":"Initialized","status":"True","lastProbeTime":null,"lastTransitionTime":"%[6]s"},{"type":"Ready","status":"True","lastProbeTime":null,"lastTransitionTime":"%[8]s"},` +
	`{"type":"ContainersReady","status":"True","lastProbeTime":null,"lastTransitionTime":"%[8]s"},{"type":"PodScheduled","status":"True","lastProbeTime":null,"lastTransitionTime":"%[6]s"}],` +
	`"hostIP":"10.0.0.%[10]d","hostIPs":[{"ip":"10.0.0.%[10]d"}],"podIP":"%[9]s","podIPs":[{"ip":"%[9]s"}],"startTime":"%[6]s",` +
	`"containerStatuses":[{"name":"web","state":{"running":{"startedAt":"%[8]s"}},"lastState":{},"ready":true,"restartCount":0,"image":"registry.example.com/shop/web:1.27.%[2]d",` +
	`"imageID":"registry.example.com/shop/web@sha256:3f4b0f4a8d1c0d1e2b3f4b0f4a8d1c0d1e2b3f4b0f4a8d1c0d1e2b3f4b0f4a8d","containerID":"containerd://%[11]x","started":true}],"qosClass":"Burstable"}}`

const (
	podsPerWorkload  = 20
	podsPerNamespace = 100
	nodes            = 100
)

// podJSON returns the pod with a number of a cluster. sent is the time of the change in nanoseconds, 0 for none.
func podJSON(cluster, pod, version int, sent int64) []byte {
	hash := sha256.Sum256(fmt.Appendf(nil, "%d/%d", cluster, pod))
	uid := fmt.Sprintf("%x-%x-%x-%x-%x", hash[0:4], hash[4:6], hash[6:8], hash[8:10], hash[10:16])
	created := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(cluster*2000+pod) * 7 * time.Second)
	address := fmt.Sprintf("10.%d.%d.%d", cluster%256, pod>>8&255, pod&255)
	return fmt.Appendf(nil, podTemplate, pod, pod/podsPerWorkload, pod/podsPerNamespace, uid, version, created.Format(time.RFC3339), sent,
		created.Add(4*time.Second).Format(time.RFC3339), address, pod%nodes, sha256.Sum256(hash[:]))
}
