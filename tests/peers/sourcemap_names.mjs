// SPDX-License-Identifier: Apache-2.0
// sourcemap_names.mjs TYPESCRIPT DUMP-MAP CODE MAP: what functions of a generated file are called in
// the source. TypeScript's parser finds all functions of the generated file, with where V8 would say
// that they start and what it would call them, and which function of the source each of them is.
// dump-map is asked for each; a name that isn't the source's is wrong, one that stays is counted.
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { createRequire, SourceMap } from "node:module";

const [, , typescript, dumpMap, codeFile, mapFile] = process.argv;
const ts = createRequire(import.meta.url)(typescript);
const json = JSON.parse(readFileSync(mapFile, "utf8"));
json.mappings += ";";
const map = new SourceMap(json);
const texts = new Map(json.sources.map((source, i) => [source, json.sourcesContent[i]]));
const parsed = new Map();

function functionsOf(file, text) {
    const tree = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true, ts.ScriptKind.TSX);
    const found = [];
    const stack = [tree];
    for (let node; (node = stack.pop()); ) {
        if (ts.isFunctionLike(node) && node.body) found.push(node);
        ts.forEachChild(node, (child) => void stack.push(child));
    }
    return { tree, found };
}

const plain = (name) => name && (ts.isIdentifier(name) || ts.isStringLiteral(name) || ts.isPrivateIdentifier(name)) ? name.text : undefined;

// What V8 calls a function: by its own name, or by what it is the value of.
function nameOf(node) {
    if (ts.isConstructorDeclaration(node)) node = node.parent;
    if (node.name) return plain(node.name);
    let parent = node.parent;
    while (ts.isParenthesizedExpression(parent) || ts.isAsExpression(parent)) parent = parent.parent;
    if (ts.isVariableDeclaration(parent) || ts.isPropertyAssignment(parent) || ts.isPropertyDeclaration(parent) ||
        ts.isParameter(parent) || ts.isBindingElement(parent)) return plain(parent.name);
    if (ts.isBinaryExpression(parent) && parent.operatorToken.kind === ts.SyntaxKind.EqualsToken)
        return ts.isPropertyAccessExpression(parent.left) ? plain(parent.left.name) : plain(parent.left);
    return undefined;
}

// An arrow function starts where it stands, any other at the bracket before its parameters.
function startOf(node, tree) {
    if (ts.isArrowFunction(node)) return node.getStart(tree);
    return node.getChildren(tree).find((child) => child.kind === ts.SyntaxKind.OpenParenToken).getStart(tree);
}

function innermost({ tree, found }, line, column) {
    const at = tree.getPositionOfLineAndCharacter(line, column);
    let best;
    for (const node of found)
        if (node.getStart(tree) <= at && at < node.end && (!best || node.getStart(tree) >= best.getStart(tree)))
            best = node;
    return best;
}

const generated = functionsOf(codeFile, readFileSync(codeFile, "utf8"));
const asked = [];
for (const node of generated.found) {
    const name = nameOf(node);
    const { line, character } = generated.tree.getLineAndCharacterOfPosition(startOf(node, generated.tree));
    const entry = map.findEntry(line, character);
    if (!name || entry.generatedLine !== line || !texts.get(entry.originalSource)) continue;
    if (!parsed.has(entry.originalSource))
        parsed.set(entry.originalSource, functionsOf(entry.originalSource, texts.get(entry.originalSource)));
    const original = innermost(parsed.get(entry.originalSource), entry.originalLine, entry.originalColumn);
    const wanted = original && nameOf(original);
    // A function that the bundler made, or put elsewhere, is none of the source.
    if (wanted) asked.push({ name, wanted, line: line + 1, column: character + 1, at: `${entry.originalSource}:${entry.originalLine + 1}` });
}
const answers = execFileSync(dumpMap, [mapFile], { encoding: "utf8", maxBuffer: 1 << 28,
    input: asked.map(({ name, line, column }) => `function ${line} ${column} ${name}\n`).join("") }).split("\n");
const right = asked.filter(({ wanted }, i) => answers[i] === wanted);
const kept = asked.filter(({ name, wanted }, i) => answers[i] === name && name !== wanted);
const wrong = asked.map((one, i) => ({ ...one, answer: answers[i] }))
    .filter(({ name, wanted, answer }) => answer !== wanted && answer !== name);
console.log(`${asked.length} functions: ${right.length} right, ${kept.length} kept, ${wrong.length} wrong`);
for (const one of wrong.slice(0, 20)) console.log(JSON.stringify(one));
for (const one of process.env.SHOW_KEPT ? kept.slice(0, 40) : []) console.log(JSON.stringify(one));
if (asked.length < 100 || wrong.length > 0 || right.length < 0.95 * asked.length) process.exit(1);
