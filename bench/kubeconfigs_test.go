package bench

import "maps"

// secret stands wherever a kubeconfig holds one; no error may contain it.
const secret = "xyzzy-secret"

// kubeconfigCase is one way to hand kubeconfigs to a client. In files <DIR> is the case's own folder; pki_test.go
// names the certificates.
type kubeconfigCase struct {
	name  string
	files map[string]string
	// list is KUBECONFIG; none means home/.kube/config. path is an explicit file. chdir is where the program runs,
	// and makes the names in list relative.
	list  []string
	path  string
	chdir string

	context, cluster, user, namespace string

	// refused means that neither accepts it.
	refused bool
	// differs says why anykind refuses what client-go accepts.
	differs string
}

const https = "server: 'https://10.0.0.1:6443'"

// config is a kubeconfig whose current context has a cluster with these fields and a user with those.
func config(cluster, user string) string {
	return "{apiVersion: v1, kind: Config, current-context: x,\nclusters: [{name: c, cluster: {" + cluster + "}}],\n" +
		"users: [{name: u, user: {" + user + "}}],\ncontexts: [{name: x, context: {cluster: c, user: u}}]}"
}

// one is a case of one file.
func one(name, data string, changes ...func(*kubeconfigCase)) kubeconfigCase {
	c := kubeconfigCase{name: name, files: map[string]string{"config": data}, list: []string{"config"}}
	for _, change := range changes {
		change(&c)
	}
	return c
}

func refused(c *kubeconfigCase) { c.refused = true }

func differs(why string) func(*kubeconfigCase) { return func(c *kubeconfigCase) { c.differs = why } }

func with(files map[string]string) func(*kubeconfigCase) {
	return func(c *kubeconfigCase) { maps.Copy(c.files, files) }
}

func asking(context, cluster, user, namespace string) func(*kubeconfigCase) {
	return func(c *kubeconfigCase) { c.context, c.cluster, c.user, c.namespace = context, cluster, user, namespace }
}

func kubeconfigCases() []kubeconfigCase {
	var all []kubeconfigCase
	for _, some := range [][]kubeconfigCase{
		clusterCases(), userCases(), execCases(), authProviderCases(), contextCases(), mergeCases(), formatCases(), brokenCases(),
	} {
		all = append(all, some...)
	}
	return all
}
