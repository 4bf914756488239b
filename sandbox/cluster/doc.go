// Package cluster runs a real Kubernetes on loopback: etcd, kube-apiserver, kube-controller-manager, kube-scheduler, and kwok's
// fake nodes and pods, with a kubectl of the same version.
//
//	c, err := cluster.Start(ctx, &cluster.Options{Components: []cluster.Component{cluster.Etcd, cluster.APIServer}})
//	if err != nil { … }
//	defer c.Stop(ctx)
//	use(c.Kubeconfig)
//
// Everything is built from Go modules on first use and cached; neither containers nor root are needed. It works on Linux and
// macOS. No process or file of a cluster outlives the process of the Start call: not after Stop, not after a failure, not after
// kill -9.
package cluster
