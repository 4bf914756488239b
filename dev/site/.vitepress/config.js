// The site has the documents of this repository as they are. `make site` copies them to pages/.
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { fileURLToPath } from 'node:url'

const site = dirname(dirname(fileURLToPath(import.meta.url)))
const pages = join(site, 'pages')
const source = 'https://github.com/anykind/anykind/blob/main/'

// sidebar returns the lists of docs/README.md, with a group for each heading.
function sidebar() {
  const groups = []
  for (const line of readFileSync(join(pages, 'docs/README.md'), 'utf8').split('\n')) {
    const heading = line.match(/^## (.*)/)
    const item = line.match(/^(?:\d+\.|-) \[([^\]]*)\]\(([^)]*)\)/)
    if (heading) groups.push({ text: heading[1], items: [] })
    if (item) groups.at(-1).items.push({ text: item[1], link: '/' + normalize(join('docs', item[2])) })
  }
  return groups
}

// linkToSource lets a link to a file that is no page lead to the repository.
function linkToSource(markdown) {
  const render = markdown.renderer.rules.link_open ?? ((tokens, i, options, _, self) => self.renderToken(tokens, i, options))
  markdown.renderer.rules.link_open = (tokens, i, options, env, self) => {
    const href = tokens[i].attrGet('href')
    if (!/^[a-z]+:|^#/.test(href)) {
      const target = normalize(join(dirname(env.relativePath), decodeURI(href.split('#')[0])))
      if (!existsSync(join(pages, target)) || !target.endsWith('.md')) tokens[i].attrSet('href', source + target)
    }
    return render(tokens, i, options, env, self)
  }
}

// showOutput shows the output of a program as plain text.
function showOutput(markdown) {
  markdown.core.ruler.push('output', (state) => {
    for (const token of state.tokens) if (token.type === 'fence' && token.info === 'output') token.info = 'text'
  })
}

export default {
  title: 'anykind',
  description: 'A Kubernetes client for Go for any kind',
  srcDir: 'pages',
  outDir: '../../.bin/site',
  cleanUrls: false,
  lastUpdated: false,
  rewrites: { 'README.md': 'index.md', 'docs/README.md': 'docs/index.md', 'docs/design/README.md': 'docs/design/index.md' },
  markdown: { config: (markdown) => { linkToSource(markdown); showOutput(markdown) } },
  themeConfig: {
    search: { provider: 'local' },
    nav: [
      { text: 'Guide', link: '/docs/' },
      { text: 'Design', link: '/docs/design/' },
      { text: 'Changes', link: '/CHANGELOG' },
    ],
    sidebar: sidebar(),
    outline: [2, 3],
    socialLinks: [{ icon: 'github', link: 'https://github.com/anykind/anykind' }],
  },
}
