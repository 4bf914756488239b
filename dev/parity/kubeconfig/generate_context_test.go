package kubeconfig_test

// several has two clusters, two users and three contexts, and no current context.
const several = `
clusters: [{name: one, cluster: {server: 'https://one'}}, {name: two, cluster: {server: 'https://two', tls-server-name: second}}]
users: [{name: ann, user: {token: anns}}, {name: bob, user: {username: bob, password: bobs}}]
contexts:
- {name: a, context: {cluster: one, user: ann, namespace: store}}
- {name: b, context: {cluster: two, user: bob}}
- {name: anonymous, context: {cluster: two}}
- {name: no-such-user, context: {cluster: one, user: nobody}}
- {name: no-such-cluster, context: {cluster: three, user: ann}}
- {name: no-cluster, context: {user: ann}}
- {name: odd-namespace, context: {cluster: one, namespace: Not_A_Label}}
- {name: "", context: {cluster: two, user: ann, namespace: unnamed}}
`

func contextCases() []kubeconfigCase {
	const current = "current-context: a" + several
	return []kubeconfigCase{
		one("the current context", current),
		one("another context", current, withOptions("b", "", "", "")),
		one("another cluster", current, withOptions("", "two", "", "")),
		one("another user", current, withOptions("", "", "bob", "")),
		one("another namespace", current, withOptions("", "", "", "other")),
		one("everything another", current, withOptions("b", "one", "ann", "other")),
		one("a context without a user", current, withOptions("anonymous", "", "", "")),
		one("a user for a context without one", current, withOptions("anonymous", "", "ann", "")),
		one("a cluster for a context without one", current, withOptions("no-cluster", "one", "", "")),
		one("a cluster for a context that names a missing one", current, withOptions("no-such-cluster", "one", "", "")),
		one("a user for a context that names a missing one", current, withOptions("no-such-user", "", "ann", "")),
		one("a namespace that cannot exist", current, withOptions("odd-namespace", "", "", "")),
		one("the unnamed context", several),
		one("a missing context", current, withOptions("c", "", "", ""), rejected),
		one("a missing cluster", current, withOptions("", "three", "", ""), rejected),
		one("a missing user", current, withOptions("", "", "nobody", ""), rejected),
		one("a context of a missing cluster", current, withOptions("no-such-cluster", "", "", ""), rejected),
		one("a context without a cluster", current, withOptions("no-cluster", "", "", ""), rejected),
		one("a missing current context", "current-context: c"+several, rejected),
		one("a missing current context, another asked for", "current-context: c"+several, withOptions("a", "", "", "")),
		one("a context of a missing user", current, withOptions("no-such-user", "", "", ""), differs(
			"client-go goes on as nobody, kubectl then asks for a user name; both end in a 401 or 403 that hides the typing error")),
		one("no context, a cluster asked for", "clusters: [{name: c, cluster: {server: 'https://c'}}]", withOptions("", "c", "", "n")),
		one("no context, a cluster and a user asked for",
			"clusters: [{name: c, cluster: {server: 'https://c'}}]\nusers: [{name: u, user: {token: t}}]", withOptions("", "c", "u", "")),
		one("no context, an unnamed cluster and user", "clusters: [{cluster: {server: 'https://c'}}]\nusers: [{user: {token: t}}]"),
		one("no context", "clusters: [{name: c, cluster: {server: 'https://c'}}]", rejected),
	}
}

func mergeCases() []kubeconfigCase {
	files := map[string]string{
		"a/config": "users: [{name: u, user: {token: first}}]\nclusters: [{name: c, cluster: {server: 'https://a', certificate-authority: ca.crt}}]\n" +
			"contexts: [{name: x, context: {cluster: c, user: u}}]",
		"a/ca.crt": "<CERT>",
		"b/config": "current-context: z\nusers: [{name: u, user: {token: second, as: bob}}, {name: v, user: {client-certificate: u.crt, client-key: keys/u.key}}]\n" +
			"clusters: [{name: c, cluster: {server: 'https://b', tls-server-name: b}}]\n" +
			"contexts: [{name: x, context: {cluster: c, user: v, namespace: lost}}, {name: z, context: {cluster: c, user: v, namespace: kept}}]",
		"b/u.crt": "<CERT>", "b/keys/u.key": "<KEY>",
		"c/config":          "current-context: x",
		"d/config":          "current-context: ''\npreferences: {colors: true}",
		"exec/config":       "users: [{name: u, user: {exec: {command: ./login, apiVersion: client.authentication.k8s.io/v1beta1}}}]",
		"broken/config":     "users: [",
		"home/.kube/config": "current-context: h\ncontexts: [{name: h, context: {cluster: h}}]\nclusters: [{name: h, cluster: {server: 'https://home'}}]",
		"empty/config":      "",
	}
	list := func(name string, list ...string) kubeconfigCase {
		return kubeconfigCase{name: name, files: files, list: list}
	}
	change := func(c kubeconfigCase, by func(*kubeconfigCase)) kubeconfigCase {
		by(&c)
		return c
	}
	return []kubeconfigCase{
		list("merge: the first file wins", "a/config", "b/config"),
		list("merge: the other order", "b/config", "a/config"),
		list("merge: a context of the first file", "a/config", "c/config", "b/config"),
		list("merge: current-context from a third file", "c/config", "a/config", "b/config"),
		list("merge: an empty current-context does not count", "d/config", "a/config", "c/config", "b/config"),
		list("merge: user, cluster and context of three files", "exec/config", "c/config", "b/config", "a/config"),
		list("merge: missing files are skipped", "missing", "a/config", "also/missing", "c/config"),
		list("merge: empty names are skipped", "", "a/config", "", "c/config"),
		list("merge: a file twice", "a/config", "c/config", "a/config"),
		list("merge: an empty file", "empty/config", "a/config", "c/config"),
		change(list("merge: overrides", "a/config", "b/config"), withOptions("x", "", "v", "n")),
		change(list("merge: relative names in the list", "a/config", "c/config"), func(c *kubeconfigCase) { c.chdir = "." }),
		change(list("merge: a broken file", "a/config", "broken/config", "c/config"), rejected),
		change(list("merge: a folder", "a/config", "b", "c/config"), rejected),
		change(list("merge: a context of no file", "a/config", "b/config"), func(c *kubeconfigCase) {
			c.context = "h"
			c.rejected = true
		}),
		change(list("merge: all missing", "missing", "also/missing"), rejected),
		change(list("merge: all empty", "empty/config", "d/config"), rejected),
		list("the file at home"),
		change(list("an explicit file wins over the list", "a/config", "b/config"), func(c *kubeconfigCase) { c.path = "home/.kube/config" }),
		change(list("an explicit file is not merged", "a/config", "b/config"), func(c *kubeconfigCase) {
			c.path = "c/config"
			c.rejected = true
		}),
		change(list("an explicit file must exist", "a/config", "c/config"), func(c *kubeconfigCase) {
			c.path = "missing"
			c.rejected = true
		}),
	}
}
