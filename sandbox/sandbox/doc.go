// Package sandbox runs a real Kubernetes on loopback: etcd, kube-apiserver,
// kube-controller-manager, kube-scheduler, and fake nodes whose pods "run", with a
// kubectl of the same version. Everything is built from Go modules on first use and
// cached; neither containers nor root are needed. It works on Linux and macOS.
//
//	cluster, err := sandbox.Start(ctx, &sandbox.Options{Components: []sandbox.Component{sandbox.Etcd, sandbox.APIServer}})
//	if err != nil { … }
//	defer cluster.Stop(ctx)
//	use(cluster.Kubeconfig)
//
// Nothing outlives the process that called Start: not after Stop, not after a
// failure, not after kill -9.
package sandbox
