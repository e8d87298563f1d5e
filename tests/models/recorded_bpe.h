// SPDX-License-Identifier: Apache-2.0
// Written by tests/models/record_bpe.py: merges of BpeTrainer of tokenizers 0.23.3.
static const struct learned {
	int vocab, ids, count;
	const char *text[6], *merges;
} learned[] = {
	{ 300, 272, 1, { "low low low low low lower lower newest newest newest newest "
		"newest newest widest widest widest" },
		"e s\012es t\012l o\012lo w\012e w\012n ew\012\304\240 low\012\304\240 new\012\304\240new est\012d est\012i dest"
		"\012w idest\012\304\240 widest\012e r\012\304\240low er\012" },
	{ 400, 310, 2, { "It's what we'll do; they're 12345 o'clock, isn't IT\077  Two  s"
		"paces\012\012\011and a tab\015\012",
		"It's IT's turn: it's 123." },
		"' s\012\304\240 t\0121 2\012I T\012I t\012\304\240 i\012\304\240 w\012\304\240 12\012\304\240 IT\012\304\24012 3\012' l\012' r\012' t\0124 5\012"
		"T w\012a b\012a c\012a n\012a t\012c k\012c l\012d o\012e s\012e y\012h at\012h ey\012o ck\012p ac\012"
		"r n\012s n\012s pac\012u rn\012\304\212 \304\212\012\304\215 \304\212\012\304\240 a\012\304\240 o\012\304\240 Tw\012\304\240 do\012\304\240 spac\012\304\240t ab\012\304\240t"
		" hey\012\304\240t urn\012\304\240i t\012\304\240i sn\012\304\240w e\012\304\240w hat\012\304\240123 45\012'l l\012'r e\012an d\012cl"
		" ock\012\304\240Tw o\012\304\240spac es\012" },
	{ 600, 297, 1, { "Stra\303\237e na\303\257ve caf\303\251 \344\270\226\347\225\214 \344\275\240\345\245\275\344\270\226\347\225\214 \360\237\232\200\360\237\232\200 caf\303\251s Stra\303\237en \342\200\202x\302\240y" },
		"a \303\203\012S t\012a f\012c af\012r a\303\203\012\302\270 \304\270\012\303\203 \302\251\012\303\244 \302\270\304\270\012\303\247 \304\267\012\303\260 \305\201\012\304\240 caf\012\304\274 \304\242\012\305\201 e\012St "
		"ra\303\203\012\303\244\302\270\304\270 \303\247\304\267\012\303\260\305\201 \304\274\304\242\012\304\240caf \303\203\302\251\012Stra\303\203 \305\201e\012\303\244\302\270\304\270\303\247\304\267 \304\256\012n a\303\203\012v e\012\302\245 \302\275\012\302\257 ve\012"
		"\302\275 \305\202\012\303\202 \305\202\012\303\242 \304\242\012\303\244 \302\275\305\202\012\303\245 \302\245\302\275\012\304\240 \303\260\305\201\304\274\304\242\012\304\240 Stra\303\203\305\201e\012\304\240 \303\244\302\270\304\270\303\247\304\267\304\256\012\304\240 na\303\203\012\304\240 \303\244\302\275\305\202\012"
		"\304\240caf\303\203\302\251 s\012\303\242\304\242 \304\244\012\303\245\302\245\302\275 \303\244\302\270\304\270\303\247\304\267\304\256\012\304\240\303\260\305\201\304\274\304\242 \303\260\305\201\304\274\304\242\012\304\240Stra\303\203\305\201e n\012\304\240na\303\203 \302\257ve\012\304\240\303\244\302\275\305\202"
		" \303\245\302\245\302\275\303\244\302\270\304\270\303\247\304\267\304\256\012" },
	{ 257, 257, 1, { "no merge at all" },
		"" },
	{ 1000, 267, 5, { "",
		"a",
		" ",
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
		"aaaaaaa aaaa aaa" },
		"a a\012aa aa\012aaaa aaaa\012aa a\012aaaa aaa\012aaaaaaaa aaaaaaaa\012\304\240 aaaa\012\304\240"
		" aaa\012aaaaaaaa aaaaaaa\012aaaaaaaaaaaaaaaa aaaaaaaaaaaaaaa\012" },
	{ 300, 300, 1, { "babbbbbbaabaababaabbabbbabbbaaababbabaaaaabaabbabbababbabbab"
		"aaaabbaaaaaabbaabbbbbababbaaabaababbaaaaaaaaaababaaaaaabaaab"
		"abaaabbbaabaababbbaaaaabbabaab" },
		"a a\012b b\012b aa\012a bb\012a baa\012b abb\012aa aa\012a babb\012b abaa\012aa bb\012aa a"
		"baa\012bb abb\012abb abaa\012babb baa\012a babaa\012b ababb\012aa baa\012aa babaa"
		"\012aa abbabaa\012bb bb\012bb bababb\012baa baa\012baa ababaa\012abb baabaa\012ab"
		"aa aaabaa\012babb aaaa\012babb bbbb\012aaaa aabb\012aaaa aababaa\012aaaa ba"
		"aababaa\012ababb abbabaa\012ababb abaaaaabaa\012babaa bbabb\012aabb bbba"
		"babb\012aabb aaaaaabb\012aaabaa babbaaaa\012bbabb ababbabbabaa\012babbba"
		"a aaabbabaa\012babbbaa ababbabaaaaabaa\012aabaa babaabbabb\012abbbaab"
		"aa babbbaaaaabbabaa\012babbbbbb aabaababaabbabb\012aaaaaababaa aaa"
		"abaaababaa\012" },
	{ 270, 270, 2, { "cababbbcbaababbcacbbcacabaaaccabcabcacabbcabacabbabccaaccbac"
		"bcccbccabbcbcbcabacbbcabccccbabccaacbbbcababccccbcaacaaaccab"
		"cbcbbbccccabccaccababbccacbbbb",
		"baccccbbcaacaccaacbacaaabababacabbaaabcacbccbbcbbbaabbbbabab"
		"ccacbaaabaacabcccbcacccbaccabccbccbacbaaabaabbcabcbaacacacba"
		"cccababaaccbcabacbbcbabcbbaaab" },
		"a b\012c c\012c b\012a a\012c ab\012b b\012a cb\012a cc\012ab cc\012cc b\012aa ab\012a cab\012ab"
		" b\012" },
	{ 270, 270, 3, { "aa b  bab\012\012 \012 aa \012 \012\012bbbbab bb b\012\012   \012b\012\012b\012 \012 \012\012 \012\012b b \012  \012 "
		"b\012 a abaaa bab bba\012aa  bbaaaaaaa  bbba\012abbaa a  \012a \012a \012b\012ba "
		"aa\012b\012\012 b   \012aba abbba\012babb\012a a",
		"b  \012 aba\012\012baabaaabbaba\012\012 \012bb\012\012aa\012ba\012 aa    a\012aa ba\012a\012\012\012baa a"
		"  ab\012ba \012\012b \012a aaa \012baa\012a\012  \012b  \012\012\012\012 \012bb\012 \012aaa bb\012aaab \012b \012b"
		" ab\012a b bb\012b\012 b\012\012a\012b\012a\012 \012 \012\012  ",
		"abb\012\012a \012\012baa\012b\012ba\012b b\012ba\012\012 b\012ba a\012a\012 \012 \012aa b\012 bab\012\012\012 ba \012a a"
		"\012\012b \012b\012 a     \012ab\012ba ab\012b aaa\012 b  a \012 b\012\012 \012b\012b  bab\012b b bbb "
		"\012\012   \012 a  \012\012b  \012\012ab \012baa b a\012a" },
		"a a\012\304\240 b\012a b\012\304\240 \304\212\012\304\240 \304\240\012\304\212 \304\212\012\304\240 a\012b a\012b aa\012b b\012\304\240 ab\012\304\240 aa\012\304\240 \304\240\304\212\012" },
	{ 270, 270, 1, { "11's1t 1a1ats1'' t11tt '' '1t a a'1asast1 t tt 1t'saa't's t "
		"st1t1s11t1's as1  ' s111a  ' 1ssaat tasat'asttaa11at 1s1s1'a"
		"saaa11a'ts1s' asss'ttt1t 1 1a1" },
		"1 1\012a s\012\304\240 1\012a a\012\304\240 t\012' s\012\304\240 '\012' t\012a t\012t t\012s s\012\304\240 a\012\304\240 s\012" },
	{ 270, 270, 2, { ".x1,,yxxx,!.  xy!!.. y x.yx 1 . .yy..1 1  .x !.1,!yyy,.x  ! "
		".x.!1.  !y,,!.,,yy..  xxx,1.!!1,1.y1yx,y11,.y.,1!.1!y.x x1y."
		" !! yx.y.,xx.1x.11.x...y 1,  !",
		"1 x.!y,.y.,!y.!x.x,y.  ..!x,y,yxxxx1y!1y!x!,!y.xx !. ,1y,yy,"
		",,xy,,y1, y,yxx..y!y y, .y.x.!x!,11  11x,,x,y !y..1, 1. ,!y1"
		" 1 ..,,x .11yx,!y .1 x y11,!,1" },
		"x x\012. .\012, !\012, ,\012\304\240 !\012\304\240 .\0121 1\012. !\012y y\012\304\240 1\012\304\240 x\012\304\240 y\012, .\012" },
	{ 1000, 372, 3, { "bbabaaaabbabaaaabbabaaabaaaaaaaabbaaaabbabbaababbababbbbbabb"
		"aababbabbbabaaaaabbbbbabbabaabbabbabbbaaabbaaabaabbbbaaabbaa"
		"abaabbaabbababbbbbbbbaababbaab",
		"bbababbbbbbbaabbbbbbbbbbbbabbbaaabbbababbbaaabaaaabaaaaababa"
		"abbbbaaababbbbabababbbbabbbbaabbaaababababbbbabbbbbabbbbbabb"
		"bbabaababaababbabaabbabbbbaaab",
		"bbbabbbaaabbaaabbbbbbabbababbbbaabbbabaaabaaabbabbaaaaaabbaa"
		"abaaaaababaabaababbbbbaabababaabbaabbbaaabaaaababbbbaabaabaa"
		"abaabbabbbbbabbbbaaabaaaaaaaab" },
		"b b\012a a\012a bb\012a b\012ab aa\012abb bb\012b aa\012aa bb\012bb bb\012b abb\012ab abbb"
		"b\012abaa aa\012b abbbb\012abb aa\012abaa bb\012aa ab\012aa aabb\012abb baa\012bbbb "
		"aa\012b ab\012b abaa\012aa b\012aa abaaaa\012ab ababbbb\012abaa aabb\012abaa bbbb"
		"aa\012abbbb babbbb\012bbbb bbbb\012babb abaabb\012abaabb aabb\012b abaaaa\012b"
		"b abb\012bb baa\012bb babb\012bb ababbbb\012bb abaaaabb\012aa baa\012aa babb\012a"
		"a aab\012abb abbaa\012abb abbbaa\012abb bab\012abb babaaaa\012ab abaa\012abaa "
		"abaaaa\012abaa babaa\012abaa abbabbaa\012abbbb aabb\012abbbb aaab\012abbbb "
		"babbabaabb\012abbbb bbabb\012baa abaaaa\012baa babbbb\012baa abbaa\012baa a"
		"baabb\012baa aaab\012baa bab\012aabb babaa\012bbbb abbbaa\012babb ababbbb\012b"
		"abb aab\012babb aababb\012ababbbb bbbbaa\012ababbbb abababbbb\012ababbbb"
		" aabbbabaa\012abaaaa baaaaab\012babbbb aabaa\012babbbb abaababaa\012abba"
		"a abaabbbbaa\012abbaa abaabbaabb\012abbaa babbababbbb\012aaab abababb"
		"bb\012aaaabb aaaabb\012aaaabb aaabaaaa\012abbbaa abaaaabaaaaab\012aaabaa"
		"aa aaaab\012abaaaabb abaaabaaaa\012abaabbbbaa ababbbbabababbbb\012abb"
		"bbbabbbb babbbbabaababaa\012abbbbbabbbb aaabaaaaaaaab\012bbbbbbbb "
		"bbbbabbbaa\012babbabaabb abbbbaaab\012abaabbaabb baaabaaaa\012bbbaa b"
		"bbbbbbbbbbbabbbaa\012bbbabb baaabbaa\012bbababbbb bbbaabbbbbbbbbbb"
		"babbbaa\012bbabaaaabb abaaaabbabaaabaaaa\012abbabbbaa abbaaabaabbb"
		"baa\012abbbab abbbaaabaaaabaaaaab\012abbbabaaaa abbbbbabbabaabb\012ab"
		"abaa baababbbb\012abaaabbabbaa aaaabbaaabaaaa\012abbbbaabb aaababa"
		"babbbb\012abbbbbbabb ababbbbaabbbabaa\012baaabaabb abbbbbabbbbaaab"
		"aaaaaaaab\012baabab abaabbaabbbaaabaaaa\012babbaababb abbbabaaaaab"
		"bbbbabbabaabb\012ababbbbbbbbaa babbaab\012babbbbaabaa baaabaabbabb"
		"bbbabbbbaaabaaaaaaaab\012abbaaabaabbaabb ababbbbbbbbaababbaab\012a"
		"bbaababbababbbb babbaababbabbbabaaaaabbbbbabbabaabb\012aaaabbaa"
		"aabb abbaababbababbbbbabbaababbabbbabaaaaabbbbbabbabaabb\012aba"
		"abbbbaaababbbbabababbbb abbbbaabbaaababababbbb\012abbbbbabbbbba"
		"bbbbabaababaa babbabaabbabbbbaaab\012bbbabbbaaabbaa abbbbbbabba"
		"babbbbaabbbabaa\012bbababbbbbbbaabbbbbbbbbbbbabbbaa abbbababbba"
		"aabaaaabaaaaab\012bbabaaaabbabaaaabbabaaabaaaa aaaabbaaaabbabba"
		"ababbababbbbbabbaababbabbbabaaaaabbbbbabbabaabb\012abbabbbaaabb"
		"aaabaabbbbaa abbaaabaabbaabbababbbbbbbbaababbaab\012ababaabaaba"
		"bbbb baabababaabbaabbbaaabaaaa\012abaaabbabbaaaaaabbaaabaaaa ab"
		"abaabaababbbbbaabababaabbaabbbaaabaaaa\012abaabbbbaaababbbbabab"
		"abbbbabbbbaabbaaababababbbb abbbbbabbbbbabbbbabaababaababbab"
		"aabbabbbbaaab\012bbbabbbaaabbaaabbbbbbabbababbbbaabbbabaa abaaa"
		"bbabbaaaaaabbaaabaaaaababaabaababbbbbaabababaabbaabbbaaabaaa"
		"a\012bbababbbbbbbaabbbbbbbbbbbbabbbaaabbbababbbaaabaaaabaaaaab "
		"abaabbbbaaababbbbabababbbbabbbbaabbaaababababbbbabbbbbabbbbb"
		"abbbbabaababaababbabaabbabbbbaaab\012bbabaaaabbabaaaabbabaaabaa"
		"aaaaaabbaaaabbabbaababbababbbbbabbaababbabbbabaaaaabbbbbabba"
		"baabb abbabbbaaabbaaabaabbbbaaabbaaabaabbaabbababbbbbbbbaaba"
		"bbaab\012bbbabbbaaabbaaabbbbbbabbababbbbaabbbabaaabaaabbabbaaaa"
		"aabbaaabaaaaababaabaababbbbbaabababaabbaabbbaaabaaaa babbbba"
		"abaabaaabaabbabbbbbabbbbaaabaaaaaaaab\012" },
	{ 1000, 326, 1, { "abbaaaccbcbbabbacbcccaaccccbcccabbabbbbcaaccbaacacbbacccccac"
		"bacbbbcaacccaaccbbcabbaacaccaaaacbccccbbbcbbacbaabccbabaaccb"
		"bbacbbbcbaaccbbbcaaacabcbabcbb" },
		"c c\012b b\012a a\012a c\012b c\012aa cc\012a bb\012b cc\012bb bc\012a cc\012c aacc\012aa c\012a"
		" bc\012b ac\012b aacc\012c abb\012bac bbbc\012a baacc\012b aa\012b aac\012b abc\012b ab"
		"aacc\012c ac\012cc bcc\012cc bbbc\012cc cac\012bb ac\012bb abb\012bb acc\012bb caacc"
		"\012bb cabb\012bb bacbbbc\012aa ac\012aa acc\012aa aac\012ac bcc\012ac bbacc\012bc b"
		"babb\012aacc caacc\012abb bbcaacc\012abb aaacc\012bcc babaacc\012bcc ccbbbc"
		"\012bbbc aaac\012acc aaaac\012caacc ccbcc\012aac accaaaac\012abc babc\012baacc"
		" bbbcaaac\012cabb abbbbcaacc\012bacbbbc aacccaacc\012baa bccbabaacc\012b"
		"aac acbbacc\012cccac bacbbbcaacccaacc\012bbac baabccbabaacc\012bbcabb"
		" aacaccaaaac\012bbbacbbbc baaccbbbcaaac\012acbcc caaccccbcc\012bcbbab"
		"b acbcccaaccccbcc\012abbaaacc bcbbabbacbcccaaccccbcc\012bccccbbbc "
		"bbacbaabccbabaacc\012abcbabc bb\012cabbabbbbcaacc baacacbbacc\012ccca"
		"cbacbbbcaacccaacc bbcabbaacaccaaaac\012bbbacbbbcbaaccbbbcaaac a"
		"bcbabcbb\012abbaaaccbcbbabbacbcccaaccccbcc cabbabbbbcaaccbaacac"
		"bbacc\012bccccbbbcbbacbaabccbabaacc bbbacbbbcbaaccbbbcaaacabcba"
		"bcbb\012cccacbacbbbcaacccaaccbbcabbaacaccaaaac bccccbbbcbbacbaa"
		"bccbabaaccbbbacbbbcbaaccbbbcaaacabcbabcbb\012abbaaaccbcbbabbacb"
		"cccaaccccbcccabbabbbbcaaccbaacacbbacc cccacbacbbbcaacccaaccb"
		"bcabbaacaccaaaacbccccbbbcbbacbaabccbabaaccbbbacbbbcbaaccbbbc"
		"aaacabcbabcbb\012" },
	{ 300, 300, 2, { "b\012aaa abaa\012\012aba\012aaba\012abab \012ba bab aaab\012\012 \012\012  bbba \012 \012 aa\012b b"
		"\012\012aa   \012\012aa \012aa \012 \012 a\012 ba\012ab bb\012\012\012ab\012\012 b\012 \012 \012bbabbbba\012b  ab\012"
		"  ba\012\012\012\012\012a\012\012abab\012ba aaaba aab\012",
		"b   \012aa\012\012\012\012 aba  \012bab ba a  b b bbb\012bb\012 aa \012 b \012  abab\012b b\012a"
		"\012 aa\012b\012b\012 a\012\012\012abbbab\012b\012 bbaaab\012bba b b  \012ba \012\012bba\012babbb\012aa \012"
		"aabb aa\012aa\012 b \012\012b b\012b\012a\012\012 ab\012a" },
		"a b\012\304\240 b\012a a\012\304\212 \304\212\012b b\012\304\240 \304\212\012\304\240 aa\012\304\240 \304\240\012\304\240 ab\012b a\012\304\240 a\012ab a\012ab bb\012\304\240b "
		"a\012bb a\012ab ab\012\304\240b b\012\304\212\304\212 \304\240\012\304\212\304\212 \304\212\304\212\012\304\240\304\212 \304\240\012\304\240\304\212 \304\240\304\212\012a ab\012a aba\012b ab\012b ab"
		"bb\012\304\212 \304\240\012\304\212 \304\240\304\212\304\240\012\304\240b ab\012\304\240b bb\012\304\240b bba\012aa a\012aa ab\012bb abbb\012\304\240aa ab\012\304\240a"
		"a aba\012\304\240\304\240 \304\240\012\304\240\304\240 \304\240\304\212\012\304\240ab a\012\304\240ab ab\012\304\240ab aa\012\304\240a ab\012abbb ab\012\304\240bb aaab\012" },
	{ 270, 270, 3, { "st'' aa''1't attttt1'tat'a s1ttt a saat1ta as' at 1'1'1a1at "
		"''1t 1ts1st''1a1 s s t11's's1s1 a1 1's'ass'satsts t' ta' a''"
		"saats'1t''t1ttta1as aaa a11s'1",
		"t '1a'a'st 1a ssssa t'a1a1''sttaa'1'tt'taa1 t ' t1 a t1tst'a"
		"'ataa' a 11a st1a 11 1'1's1t 1 'as1sa st' sa1t s s1s ss a'ts"
		"t1s'st1t 1  s 11s t't11as'at s",
		"ta1sss1ss t's''1 t''11'staata '1ta'a1' saatt s1a'1s asaa' sa"
		"' a1s's ssa1a 1st''st't aa1'as's 'aaa1 ''1 ss' 1ta1 a' ''s't"
		"'''ta t1 1stt1  s 1 ts 1'ss t'" },
		"\304\240 s\012\304\240 a\012\304\240 1\012' '\012\304\240 t\012' s\012a a\012t t\012' t\012s t\012t a\012s s\012a t\012" },
	{ 300, 283, 1, { "!..yy 1x.!,!x.!!1x1,y1,1,yyyxxy! !x 1, 1x.y1y1 ,x .y,.. xy1x"
		",x, ,yxy,1 x!xx !y y.xxy!x!x!,!y,x,y1 x1!yy!1xx.!1! y1.1!xx "
		"1,yy!!x1. 1!!! 1x .x !.,y,y!1x" },
		"\304\240 1\012x x\012y y\012! !\012\304\240 !\012\304\240 x\012! ,\012. .\012\304\240 ,\012\304\240 .\012\304\240 y\012xx y\012!, !\012! ..\012,"
		" ..\012. !\012. ,\012. !!\012. !,!\012x y\012y xxy\012y xy\012yy yxxy\012!! !\012\304\240! .,\012\304\240x "
		"y\012" },
	{ 1000, 342, 2, { "abbaabbbaabbaabababbbbbbabbababbaaaaabbabbbbabaabaaabbaaabba"
		"aabaabbbbabaaabbbaaabbbbaaabbaabbbabbabbbaabbbabbbbababaabaa"
		"baaabbabbbbbbbbaabaabaabbabaaa",
		"bababbabaaabaabbbbabbaaabbbaabaabbbbbabbbbbbbbbbbbbbabbababa"
		"bbabbbaaabaaaabababababaaabbbaaabaababbbaabbbbabbbbbaabaaaab"
		"bbaaabaaaabababbababaabbbaaaba" },
		"b b\012a a\012b aa\012a bb\012a b\012a baa\012bb bb\012abb aa\012abb baa\012b ab\012bb baa"
		"\012b abb\012bb aa\012abb ab\012bb abaa\012bb babb\012aa bab\012baa baa\012abb abb\012a"
		"b abaa\012abaa bbbb\012abaa aabab\012bbbb bbbb\012bbbb abbab\012bab abb\012b a"
		"bbbaa\012bb ababaa\012aa bbbaa\012aa abbabb\012baa bbbb\012baa abbaa\012baa aa"
		"bbbaa\012abb abbbaa\012abb bbbaa\012abb bbaa\012ab a\012ab ababaa\012ab abbabb"
		"baa\012abaa abbbaa\012abaa bbbaa\012abaa abaabbbb\012abaa babbbaa\012bbbb b"
		"baa\012bbbb abbbbbaa\012abbaa abbbaa\012abbaa bbbaa\012abbaa bbbabb\012abba"
		"a abaabbbb\012abbaa aaabbabb\012abbbaa bbbabb\012abbbaa abaababbbaa\012b"
		"abb bbbbbbbb\012bbaa bababb\012abbab abaabbbaa\012bbabaa a\012bbabaa baa"
		"abbaa\012baabaa abbabb\012baabaa bbabaaa\012abaaaabab abababaa\012abaaaa"
		"bab abbababaabbbaa\012bbbbabbab ababbabbbaa\012bbbbabbab abbaaaaab"
		"babb\012bababb abaaabaabbbb\012bbababaa baabaaabbabb\012baabbbb babbb"
		"bbbbbbb\012baaaabbbaa abaaaabababbababaabbbaa\012abbbbaa abbaabbba"
		"bb\012abaaabbbaa abbbbaaabbaabbbabb\012bbbbbbaa baabaabbabaaa\012bbbb"
		"abbbbbaa baaaabbbaaabaaaabababbababaabbbaa\012abbaaabbbaa baabb"
		"bbbabbbbbbbbbb\012abbaabbbaa bbaabababb\012abbaaabaabbbb abaaabbba"
		"aabbbbaaabbaabbbabb\012abbbaabbbabb bbababaabaabaaabbabb\012abbbaa"
		"abaababbbaa bbbbabbbbbaabaaaabbbaaabaaaabababbababaabbbaa\012bb"
		"abaabaaabbaa abbaaabaabbbbabaaabbbaaabbbbaaabbaabbbabb\012abaaa"
		"abababababaa abbbaaabaababbbaabbbbabbbbbaabaaaabbbaaabaaaaba"
		"babbababaabbbaa\012bbbbabbabababbabbbaa abaaaabababababaaabbbaa"
		"abaababbbaabbbbabbbbbaabaaaabbbaaabaaaabababbababaabbbaa\012bbb"
		"babbababbaaaaabbabb bbabaabaaabbaaabbaaabaabbbbabaaabbbaaabb"
		"bbaaabbaabbbabb\012bababbabaaabaabbbb abbaaabbbaabaabbbbbabbbbb"
		"bbbbb\012abbaabbbaabbaabababb bbbbabbababbaaaaabbabbbbabaabaaab"
		"baaabbaaabaabbbbabaaabbbaaabbbbaaabbaabbbabb\012abbbaabbbabbbba"
		"babaabaabaaabbabb bbbbbbaabaabaabbabaaa\012bbbbabbabababbabbbaa"
		"abaaaabababababaaabbbaaabaababbbaabbbbabbbbbaabaaaabbbaaabaa"
		"aabababbababaabbbaa aba\012bababbabaaabaabbbbabbaaabbbaabaabbbb"
		"babbbbbbbbbb bbbbabbabababbabbbaaabaaaabababababaaabbbaaabaa"
		"babbbaabbbbabbbbbaabaaaabbbaaabaaaabababbababaabbbaaaba\012abba"
		"abbbaabbaabababbbbbbabbababbaaaaabbabbbbabaabaaabbaaabbaaaba"
		"abbbbabaaabbbaaabbbbaaabbaabbbabb abbbaabbbabbbbababaabaabaa"
		"abbabbbbbbbbaabaabaabbabaaa\012" },
	{ 300, 300, 3, { "cbbccaacbccaabbaacccacbbccccacacaaaaacabbbcacacbbacabcbbcacb"
		"bacbaacababbaacaaaabbcbbaccacbbabbabaaacaaabbaccabcacabcbabb"
		"aabcbaaabcccaaaabbacbbbaaaacca",
		"acbbcbacbcabacabacacaacccacbbcabaaaacbaccbbbcbbcacaaabccccab"
		"aacaabbbaaaabbccaababbcccccacaabbcbaaccabacbbaaabcbcacccabba"
		"cbababcaccbbcacaaacabbcbbcccbb",
		"bcaccabcabaacabccbbabbaccacabcbbabbcbacbaabacbaaabbacabaabbb"
		"abbccbcbccbbaabcaccbcbbccacabbaabaaacabaccccbacaabbacabccaaa"
		"bbcccccabcaabcbabbacabccccbbbc" },
		"c a\012b b\012a a\012c c\012ca b\012c bb\012a bb\012c b\012c ca\012a b\012a cab\012a cb\012ca ca"
		"\012aa b\012cc bb\012c cab\012ca bb\012aa bb\012a cbb\012ca cbb\012aa aa\012aa abb\012cc b"
		"\012a ca\012a cc\012a cca\012ca aaabb\012aa cab\012aa ab\012cc cc\012cbb abb\012cbb cca"
		"\012abb aa\012abb acab\012cb acb\012ccbb b\012a caca\012a ccab\012a ccbbb\012b ca\012b "
		"aa\012b abb\012b caca\012" },
	{ 300, 286, 1, { "  b\012a \012 \012bab\012 b baba \012aaaba\012\012a\012b baba\012\012\012\012\012aab   \012 a b   ba\012\012"
		"aab\012a\012babba a\012 \012 a\012 b  \012\012\012bb\012 bbba  bbaaba ba  ab\012\012  \012b\012 a  "
		"\012b  aaab \012bbb\012\012a a\012\012a\012b  \012baba" },
		"b a\012\304\240 a\012\304\240 \304\240\012\304\240 b\012a a\012\304\212 \304\212\012\304\240 ba\012b b\012\304\240 \304\212\012aa b\012a ba\012b ba\012\304\240ba ba\012\304\212"
		" \304\240\304\212\012ba b\012ba ba\012ba aba\012ba bba\012\304\240a b\012\304\240a aab\012\304\240\304\240 \304\212\304\212\012\304\240\304\240 \304\240\304\212\012\304\240b bba\012"
		"\304\240b baaba\012aa aba\012\304\212\304\212 \304\240\304\240\012\304\212\304\212 \304\212\304\212\012bb b\012\304\240\304\212 \304\240\012" },
	{ 300, 300, 2, { "s  ' ' ''  ''a1' sat' 1as'ast t'ss't11t st s as1 s t11 't  t"
		"1's''1sssts1st'1t1'1'' s'at  tta ta''t t s' t ss'  s1  ' 1' "
		"t'1a1 1as1 1s's'' 1a''at 111 a",
		"ts a1a'satss11 at1saass't111t' 'sat1 ' 'st 'st1's'1st' stast"
		"taaa1a s'tt1tsas1t''aas''ss1tsas'astt11tas1s'as'1 'a' 'atsas"
		"s'a ' '1t'1t1a1aa1'1s1ts'1ssas" },
		"a s\012\304\240 '\012\304\240 s\0121 1\012\304\240 t\012' '\012a t\012' s\012s s\012s t\012\304\240 1\012t s\012' t\012a a\012as t"
		"\012a as\012\304\240 a\012\304\240' '\012\304\240s t\01211 1\012ts as\012ast t\012s as\012s at\012s aas\012t a\012t a"
		"s\012\304\240 as\012\304\240 at\012\304\240 111\012\304\240s s\012\304\240s at\012\304\240t a\012\304\240t ta\012at ss\012at sas\012ss as\012s"
		"s st\012aa a\012\304\240st astt\012saas s\012atsas s\012ssst s\012" },
	{ 270, 270, 3, { "!1 1!y.1..1x1,.,1 ,, x.y .. .. 11!yy!11.yx1xx!.xx.y ,,!,!x 1"
		"1x!!11.y x1 ,!1y.,!y, .!.xx x..xxy1,x1!!x,,1y!,,.,,,,! x.,,y"
		", !,x!y,1.!,x 1,,x.1!.,...!yx1",
		"!, .x,xxy.xx!!.! ..xxy yxy. !.yyy!1..1 .x!!1  y!1 y.,,y,!! ."
		",!xy1,, .x. xyyx1yy.,,y!,x x.1.!,,y,yxy 1yyx1y1 1 .!1 !1x!,,"
		".,.x .x111! x x, x x 1yxx 1.xy",
		",!yx,,  ,1!x.x.y.1!1!x! y1x.x x,,,..1.x.y.!  1.y!! ,x1x,.!, "
		"!,.1 ,y x, 1,y, !x y yy.  xy x, 1!xxy1 1!1. ,,y1x1x11y1.,1y,"
		"x!.,y 1..,! .xy!1,y  .,.!xyx!x" },
		", ,\012\304\240 x\012\304\240 1\012\304\240 .\012x y\012! ,\012. ,\012y y\012! !\012. .\012. !\0121 1\012x x\012" },
	{ 270, 270, 1, { "aaaaaaabaabbbbbbbaabbabbabbbabbbbbbabaaaaabbaaabaabbbaabaabb"
		"abbbbbabbaabbbababaabababbbaabababbaaabbbbabbbabbabbaababbba"
		"bbbababaaabbababbbbabaaabaabbb" },
		"b b\012a a\012a bb\012a b\012ab aa\012b abb\012b aa\012b ab\012bb bb\012bb abb\012abb aa\012b"
		"b baa\012aa aa\012" },
	{ 300, 300, 2, { "bbbbababccbacaabbbcaccbaacbaacccabbcccbabbbbabbbccacbcabaacb"
		"ababbbbbaacbcabbabcabcabcaacabbacaccbcbbccccaabacacaaabcaacc"
		"abaccbaacaacaaacabbbabbcbbbaaa",
		"cabcbcbaaabcababbabaaabbcababcbabacbabbcbaabcbaccbacbcabcacc"
		"accbababcacbcaacbbbbaaabacacaabbccaabcabcaacccaacccccccbcacc"
		"cabcbbacbccaaaaabcbccaaaacccac" },
		"a b\012a c\012c c\012b b\012ab c\012a ac\012a a\012b c\012b ab\012ac c\012b cc\012aac cc\012a ab"
		"\012b ac\012bb bb\012abc abc\012aa abc\012bc ab\012b aac\012ab ab\012ac ac\012cc cc\012aac"
		" ab\012aa ab\012bc b\012bc bb\012bab bb\012acc baac\012bcc aa\012a abc\012a abcabc\012a"
		" aacab\012b aa\012b acc\012b aaccc\012b abcabc\012c ab\012c abc\012c babbb\012c accb"
		"aac\012ab bcc\012ab bbbb\012ab bcbb\012" },
	{ 1000, 308, 3, { "\012   b aab\012\012  \012babbbb aa \012a\012b\012 a\012 a a\012 a\012babb a a bb    b a  "
		"aa a\012 \012ab  a\012ab\012\012\012bb baba   ab\012a  \012\012aabb b a\012\012\012b\012\012a\012bb\012 b a\012"
		"a bb  bb \012 \012aaabb\012\012\012b\012\012a  ba\012 ",
		" ba aaaa\012 baa\012ba\012a\012aab    \012\012a aa   a bb\012 \012a ba\012 b\012 bbb a\012\012\012b"
		"bb \012 \012abbbb\012 \012b b\012 b aa \012a\012a\012bba a  \012 bb  \012 b\012a bbb \012\012 a \012b "
		"aaa \012\012\012  \012b\012bbb bb\012a\012b b\012\012abb\012",
		"\012b\012\012\012 b \012bb\012a\012a\012\012ab\012a \012bbb baa \012aa   \012 aa aa   \012baa  \012\012 \012 ba"
		"a b\012aaa\012a\012bb\012a aaab\012b    a\012a\012a\012a  \012a\012a\012 aba abb \012aa\012a\012\012\012 b\012b"
		"b b \012 bab\012b\012\012 \012ababa a  \012\012aaa " },
		"b b\012\304\240 a\012\304\240 \304\240\012\304\240 b\012a a\012\304\212 \304\212\012a b\012\304\240 bb\012\304\212 \304\240\012\304\240a a\012a bb\012\304\240\304\240 \304\212\012\304\240\304\240 \304\240\012bb "
		"b\012\304\240a aa\012\304\240b a\012\304\240b aa\012\304\212\304\212 \304\212\012b a\012b abb\012\304\240 \304\212\012\304\240 \304\212\304\240\012\304\240b ab\012aa a\012\304\240bb b\012"
		"b aa\012\304\212 \304\240\304\240\012\304\240 \304\212\304\212\012\304\240 \304\212\304\212\304\212\012bb a\012\304\240a b\012\304\240a bb\012\304\240a ab\012\304\240a ba\012\304\240\304\240 \304\212\304\212\012\304\240\304\240 \304\240\304\240"
		"\304\212\012aa b\012aa bb\012aa abb\012\304\212\304\212 \304\240\012\304\212\304\212 \304\240\304\240\012ab a\012ab aba\012abb bb\012\304\240\304\240\304\240 \304\212\012\304\240aaa"
		" a\012\304\240aaa b\012babb bb\012\304\240bab a\012\304\240\304\212\304\212\304\212 \304\240\304\240\012\304\240\304\240\304\212\304\212 \304\240\304\212\012" },
	{ 270, 270, 1, { "a ts''t t'tsts's as1 ''''' s11' t' ssast' t1s111ss1 s1ast11'"
		"t  '''  t't1t1a '1s1s 1tat't'ta' a1s' t11 1a' attt'tt's t  s"
		"'ss 1s't 1a1t''1  ta111t1aa1st" },
		"' '\012\304\240 t\012' t\0121 1\012s t\012\304\240 1\012\304\240 s\012' s\012\304\240 a\012a st\012t t\012\304\240 ''\01211 1\012" },
	{ 1000, 315, 2, { "x !x!y,.!.!y!.x.,.. x ..x!!yxyx!,, 1x x,xx!1,  ,,1.!! y 1,y "
		"!!1x y,yyy1,x!1,x,,!x!, !,.,! yxyxx,,,x111.y,.,,.1y,,..1 xxy"
		".1 ,x,x,!,1xy,1.xxyy,., xy!,1 ",
		"x,11yx,!1.1x!!!..y.!.xx .1 yxy.!, !y. ! .!111.111!.1!!, ,x  "
		"yyx, x!! x.1,1,1...y,  .1x111!,,!x .x.,.,!1.x...xy,xyy,11!x1"
		"!!x x!,x11y!.y!1! x.yyy.x! ,yx" },
		"1 1\012! ,\012x y\012. .\012! !\012\304\240 x\012, ,\012! .\012. ,\012y y\012\304\240 .\012\304\240 y\01211 1\012x x\012\304\240 !"
		"\012\304\240 ,\012, !\012, .\012y x\012\304\240 1\012xy y\012.. .\012., !\012yy y\012\304\240y xy\012! !,\012! ..\012, !"
		",\012, .,\012. !,\012. !!\012. !.\012x xyy\012y xy\012\304\240 !,\012\304\240 xy\012\304\240 ..\012\304\240 !!\012\304\240 ,,\012\304\240 "
		"yy\012!, ,\012!, ,!\012!! !..\012\304\240x xy\012,, !\012,, ,\012,, .\012,, ..\012!. !\012., ..\012."
		", .,!\012\304\240. !\012,. ,,.\012,. !.!\012\304\240yxy xx\012yxy x\012\304\240!, .,!\012\304\240yy x\012" },
};
// tinyshakespeare, 4096 ids: FNV-1a of the merges, each with a line end
#define SHAKESPEARE_MERGES 0x6aafcac4e41bdb1cu
