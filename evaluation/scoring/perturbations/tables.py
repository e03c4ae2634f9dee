"""Tables of the robustness kinds, all of our own writing. Keys are in lower case."""


def word_set(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Letters beside each letter of an English keyboard.
NEIGHBOURS = {
    "q": "aw", "w": "eqs", "e": "drw", "r": "eft", "t": "gry", "y": "htu", "u": "ijy", "i": "kou",
    "o": "ilp", "p": "lo", "a": "qsz", "s": "adwxz", "d": "cefsx", "f": "cdgrv", "g": "bfhtv",
    "h": "bgjny", "j": "hkmnu", "k": "ijlm", "l": "kop", "z": "asx", "x": "cdsz", "c": "dfvx",
    "v": "bcfg", "b": "ghnv", "n": "bhjm", "m": "jkn",
}  # fmt: skip
LEET = {"a": "4", "e": "3", "i": "1", "o": "0", "s": "5", "t": "7"}
HOMOGLYPHS = dict(zip("aceiopsxyjABCEHKMOPTX", "асеіорѕхујАВСЕНКМОРТХ", strict=True))

CONTRACTIONS = {  # in full: contracted
    "are not": "aren't", "cannot": "can't", "could not": "couldn't", "did not": "didn't",
    "does not": "doesn't", "do not": "don't", "had not": "hadn't", "has not": "hasn't",
    "have not": "haven't", "is not": "isn't", "must not": "mustn't", "need not": "needn't",
    "should not": "shouldn't", "was not": "wasn't", "were not": "weren't", "will not": "won't",
    "would not": "wouldn't", "i am": "i'm", "you are": "you're", "we are": "we're",
    "they are": "they're", "he is": "he's", "she is": "she's", "it is": "it's", "that is": "that's",
    "there is": "there's", "what is": "what's", "who is": "who's", "where is": "where's",
    "here is": "here's", "how is": "how's", "i have": "i've", "you have": "you've",
    "we have": "we've", "they have": "they've", "i will": "i'll", "you will": "you'll",
    "he will": "he'll", "she will": "she'll", "it will": "it'll", "we will": "we'll",
    "they will": "they'll", "let us": "let's",
}  # fmt: skip
# After these an 's stands for “has”; other participles are known by their -ed.
PARTICIPLES = word_set(
    """
    been become begun bought brought built come cut done fallen felt found given gone got gotten
    grown had held kept known left lost made met paid put read run said seen sent set shown
    spent taken taught thought told turned won worn written
    """
)
FILLERS = ("um", "uh", "you know", "well", "I mean")
SUFFIXES = ("That is all.", "That is it.", "End of text.", "Nothing more to add.")

MISSPELLINGS = dict(
    pair.split(":")
    for pair in word_set(
        """
        absence:absense accept:acept accidentally:accidently accommodate:accomodate
        achieve:acheive acknowledge:acknowlege acquire:aquire across:accross
        actually:actualy address:adress advertisement:advertisment aggressive:agressive
        almost:allmost already:allready although:altough always:allways amateur:amatuer
        among:amoung analysis:analisis apparently:apparantly appearance:appearence
        argument:arguement arrive:arive assistant:assistent athlete:athelete
        attendance:attendence available:availible average:avarage awful:awfull
        awkward:akward bargain:bargin basically:basicly beautiful:beautifull because:becuase
        becoming:becomming before:befor beginning:begining behavior:behavoir belief:beleif
        believe:beleive benefit:benifit between:beetween bicycle:bycicle boundary:boundry
        brilliant:brillant business:buisness calendar:calender career:carreer
        careful:carefull category:catagory ceiling:cieling cemetery:cemetary certain:certian
        changeable:changable chief:cheif children:childern chocolate:choclate climbed:climed
        coffee:coffe colleague:collegue coming:comming commercial:comercial
        committed:commited committee:commitee completely:completly concede:consede
        conscience:concience conscious:concious consider:concider consistent:consistant
        controversy:contraversy convenient:convienient correspondence:correspondance
        country:contry courageous:couragous criticism:critisism curiosity:curiousity
        customer:custumer daughter:daugter deceive:decieve decided:desided
        definitely:definately dependent:dependant describe:discribe desperate:desparate
        develop:develope difference:diffrence different:diffrent difficult:dificult
        dilemma:dilema dining:dinning disappear:dissapear disappoint:dissapoint
        disappointed:dissapointed disappointing:dissapointing disease:desease doctor:docter
        easily:easely eighth:eigth eligible:eligable embarrass:embarass enough:enought
        environment:enviroment equipment:equiptment especially:expecially
        essential:essencial every:evry everything:everthing exaggerate:exagerate
        excellent:excelent except:exept excitement:excitment exercise:excercise
        existence:existance expensive:expencive experience:experiance
        explanation:explaination extremely:extremly familiar:familar family:famly
        favorite:favorit february:febuary finally:finaly foreign:foriegn forty:fourty
        forward:foward friend:freind friendly:freindly friends:freinds generally:generaly
        genius:genious government:goverment grammar:grammer grateful:greatful
        guarantee:garantee guard:gaurd guidance:guidence happened:happend
        happening:happenning happiness:happyness harass:harrass height:heigth hoping:hopeing
        humorous:humerous hundred:hunderd hygiene:hygeine identity:idenity imagine:imagin
        immediate:imediate immediately:immediatly important:importent incredible:incredable
        independent:independant influence:influance information:infomation
        intelligent:inteligent interesting:intresting interfere:interfear interrupt:interupt
        introduce:intoduce island:iland jealous:jelous jewelry:jewelery kitchen:kichen
        knowledge:knowlege language:langauge learned:lerned leisure:liesure length:lenght
        library:libary license:lisence listen:lissen literature:litrature little:litle
        loneliness:lonelyness lovely:lovley maintenance:maintainance marriage:marrage
        material:meterial meanwhile:meanwile medicine:medecine memory:memmory message:mesage
        millennium:millenium minute:minuite mischievous:mischievious misspell:mispell
        money:mony morning:mornning mountain:mountin movie:moive muscle:musle
        natural:naturel necessary:neccessary neighbor:nieghbor neither:niether
        nervous:nervious niece:neice noticeable:noticable nowadays:nowdays occasion:ocassion
        occasionally:occasionaly occur:ocur occurred:occured official:offical often:offen
        opinion:opinon opportunity:oppurtunity opposite:oposite original:origional
        parallel:paralell parliament:parliment particular:particuler people:poeple
        performance:performence perhaps:perhapes permanent:permenant
        perseverance:perserverance person:persen personal:personel persuade:pursuade
        piece:peice planning:planing pleasant:plesant possession:posession possible:possable
        practical:practicle prefer:perfer preferred:prefered preparation:preperation
        presence:presense privilege:priviledge probably:probaly problem:probelm
        professor:proffessor promise:promiss pronunciation:pronounciation
        psychology:phsycology publicly:publically purpose:pourpose quality:qualtiy
        quantity:quantitiy question:qestion quiet:queit quite:qiute really:realy
        receipt:reciept receive:recieve received:recieved recognize:reconize
        recommend:recomend reference:referance referred:refered relevant:relevent
        relief:releif religious:religous remember:rember repetition:repitition
        restaurant:restaraunt rhythm:rythm ridiculous:rediculous sacrifice:sacrafice
        safety:safty sandwich:sandwhich saturday:saterday schedule:schedual science:sceince
        secretary:secratary seize:sieze sense:sence sentence:sentance separate:seperate
        sergeant:sargent several:severel similar:similiar sincerely:sincerly soldier:solider
        something:somthing sometimes:somtimes special:speical speech:speach stopped:stoped
        strength:strenght student:studant studying:studing succeed:succed success:sucess
        successful:succesful surely:surley surprise:suprise surprised:suprised
        swimming:swiming system:sistem teacher:techer technique:tecnique
        temperature:temperture terrible:terible their:thier themselves:themselfs
        thought:thougt threshold:threshhold through:throught together:togather
        tomorrow:tommorow tongue:tounge tried:tryed truly:truely twelfth:twelth
        tyranny:tyrany unfortunately:unfortunatly until:untill unusual:unusuall
        usually:usualy vacuum:vaccum valuable:valueable vegetable:vegtable vehicle:vehical
        very:verry village:villiage violence:voilence visible:visable waiter:waitor
        wanted:wantted watch:wach weather:wether wednesday:wensday weird:wierd
        welcome:wellcome whether:wether which:wich white:wite without:witout woman:womman
        wonderful:wonderfull writing:writting written:writen yesterday:yesturday young:yung
        """
    )
)
